#include "backend/daemon/daemon.hh"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "backend/daemon/checkpoints.hh"
#include "backend/daemon/device_shape.hh"
#include "backend/daemon/monitor.hh"
#include "backend/daemon/notify.hh"
#include "backend/daemon/preparations.hh"
#include "backend/daemon/reload.hh"
#include "backend/gate/gate_keeper.hh"
#include "backend/identity/token_book.hh"
#include "base/counted.hh"
#include "base/errno_text.hh"
#include "base/log.hh"
#include "base/schemes.hh"
#include "base/version.hh"
#include "transport/tls/peer_place.hh"
#include "wire/data_connection.hh"
#include "wire/monitor.hh"

namespace outboard::backend {
namespace {

/// A server that serves one program has often ended by then and needs no helper.
constexpr std::chrono::seconds monitor_delay{2};

constexpr std::chrono::seconds look_at_certificates_every{1};

/// A client whose token was revoked computes for so long at most.
constexpr std::chrono::milliseconds look_at_tokens_every{300};

/// Stands in front of a session's number.
constexpr std::string_view end_question = "end ";

/// A session takes five descriptors, and most systems limit programs to 1,024 at first.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

result<unique_fd> take_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, number);
  CHECK(::sigprocmask(SIG_BLOCK, &set, nullptr) == 0);
  unique_fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return failure(fmt::format("signalfd: {}", errno_text(errno)));
  return fd;
}

struct passed_socket {
  std::string_view scheme;
  bool foreign = false;  ///< other hosts can reach it
};

result<passed_socket> inspect_passed_socket(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return failure(
        fmt::format("descriptor {} was passed as a socket, but is none: {}", fd, errno_text(errno)));
  }
  const auto scheme_by = [](bool scheme_traits::*trait) {
    const auto found = std::ranges::find(schemes(), true, trait);
    return found == schemes().end() ? std::string_view() : found->name;
  };
  if (address.ss_family == AF_UNIX) return passed_socket{scheme_by(&scheme_traits::has_socket_file), false};
  const std::string_view far = scheme_by(&scheme_traits::leaves_host);
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return passed_socket{far, (ntohl(v4.sin_addr.s_addr) >> 24) != 127};
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    return passed_socket{far, !IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)};
  }
  return failure(fmt::format("a socket was passed that no transport uses; known: {}", url_forms()));
}

/// Which clients of a listener may speak without TLS; nothing: all do, and the gate has no part in it.
std::optional<plain_clients> plain_clients_of(const config& c, const std::string& url) {
  if (!traits_of(url).leaves_host || c.tls == tls_choice::off) return std::nullopt;
  if (c.tls == tls_choice::required) return plain_clients::none;
  if (c.tls == tls_choice::allowed) return plain_clients::all;
  if (transport::tls::is_on_this_host(url)) return std::nullopt;
  return plain_clients::of_this_host;
}

/// May a client come encrypted? Sockets that were passed may be of any kind.
bool needs_tls(const daemon_settings& settings) {
  return settings.own_environment("LISTEN_FDS") ||
         std::ranges::any_of(settings.listen, [&](const std::string& url) {
           return plain_clients_of(settings.configuration, url).has_value();
         });
}

class daemon {
 public:
  daemon(daemon_settings settings, token_book tokens, probed_device device, guest_rules rules,
         live_settings live, audit_log audit, event_loop loop, unique_fd signals)
      : settings_(std::move(settings)),
        device_(std::move(device)),
        loop_(std::move(loop)),
        signals_(std::move(signals)),
        tokens_(std::move(tokens)),
        live_(std::move(live)),
        audit_(std::move(audit)),
        workers_(loop_, settings_for_workers(), [this] { session_ended(); }),
        monitor_(settings_for_monitor(), workers_),
        checkpoints_(loop_, {settings_.command, device_.kind, settings_.own_environment, &audit_}, workers_),
        guests_(
            loop_, with_books(std::move(rules)), [this](accepted_session&& s) { return begin(std::move(s)); },
            [this](const asker& who) { return answer(who); }),
        gate_(loop_, settings_.command, settings_.own_environment,
              [this](gate_arrival&& arrival) { admit(std::move(arrival)); }) {}

  status listen_everywhere();
  status serve();

 private:
  struct listening {
    std::unique_ptr<transport::listener> listener;
    std::string scheme;
    bool ours = false;  ///< not passed by a service manager, who decides about its file
    event_loop::id watch = 0;
  };

  worker_settings settings_for_workers();
  monitor_settings settings_for_monitor() const;
  std::optional<wire::refusal> begin(accepted_session&& guest);
  status listen_on(const std::string& url);
  status adopt(unique_fd socket);
  status add(std::unique_ptr<transport::listener> listener, std::string scheme, bool ours);
  bool lets_in_strangers() const;
  status serve_by_gate(const transport::listener& listener, plain_clients plain);
  void admit(gate_arrival&& arrival);
  void look_at_certificates();
  void accept_from(std::size_t index);
  void pause(std::size_t index, const std::string& why);
  void on_signal();
  void begin_to_stop();
  void session_ended();
  void look_at_tokens();
  guest_rules with_books(guest_rules rules) {
    rules.tokens = &tokens_;
    rules.identities = &live_.identities;
    rules.audit = &audit_;
    rules.allowed = live_.allowed;
    return rules;
  }
  bool serves_local_users() const {
    return live_.allowed.any || !live_.allowed.users.empty() || live_.identities.names_local_users();
  }
  result<std::string> reload(const audit_log::actor& by);
  result<std::string> end_session(const asker& who);
  status open_socket_file(const std::string& url) const;
  status may_ask(const asker& who) const;
  result<shared_answer> answer(const asker& who);
  std::string doctor(const asker& who) const;
  std::vector<std::string> urls() const;

  daemon_settings settings_;
  probed_device device_;
  event_loop loop_;
  unique_fd signals_;
  token_book tokens_;
  live_settings live_;
  audit_log audit_;
  workers workers_;
  monitor monitor_;
  checkpoints checkpoints_;
  answers answers_;
  guests guests_;
  gate_keeper gate_;
  std::vector<listening> listeners_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  bool draining_ = false, stopped_ = false;
};

worker_settings daemon::settings_for_workers() {
  worker_settings s;
  s.command = settings_.command;
  s.device = device_.kind;
  s.uuids = uuids_of(device_.snapshot);
  s.may_occupy_device = !exclusive_compute_mode(device_.snapshot);
  s.limits = live_.limits;
  s.several_identities = [this] { return serves_local_users() || tokens_.named() != 0; };
  s.audit = &audit_;
  s.pool = settings_.configuration.pool;
  s.confine = settings_.configuration.confine;
  s.confine_cuda = confine_cuda_of(settings_.configuration, device_);
  s.compiler_cache = settings_.configuration.compiler_cache;
  s.own_environment = settings_.own_environment;
  return s;
}

monitor_settings daemon::settings_for_monitor() const {
  monitor_settings s;
  s.command = settings_.command;
  s.device = device_.kind;
  for (const auto& d : device_.snapshot.devices) s.visible.push_back(d.pci_bus_id);
  s.in_order = !settings_.configuration.shape.visible.empty();
  s.own_environment = settings_.own_environment;
  return s;
}

std::optional<wire::refusal> daemon::begin(accepted_session&& guest) {
  if (guest.hello.wanted == wire::purpose_checkpoint) return checkpoints_.begin(std::move(guest));
  if (guest.hello.wanted == wire::purpose_resume) return workers_.resume(std::move(guest));
  if (guest.hello.wanted == wire::purpose_data) return workers_.add_data_connection(std::move(guest));
  if (guest.hello.wanted != wire::purpose_monitor) return workers_.begin_session(std::move(guest));
  if (draining_) return wire::refusal{wire::refusal_reason::busy, "the server is shutting down"};
  return monitor_.begin(std::move(guest));
}

status daemon::listen_everywhere() {
  for (unique_fd& socket : take_passed_sockets()) OUTBOARD_TRY(adopt(std::move(socket)));
  // The default socket is used only if no URL was given and no socket was passed.
  if (listeners_.empty() || !settings_.configuration.listen.empty()) {
    for (const std::string& url : settings_.listen) OUTBOARD_TRY(listen_on(url));
  }
  if (listeners_.empty()) return failure("there is nothing to listen on; give --listen URL");
  return {};
}

status daemon::listen_on(const std::string& url) {
  transport::listen_options options;
  options.allow_foreign_hosts = lets_in_strangers();
  auto listener = settings_.transports->listen(url, options);
  if (!listener.ok()) return std::move(listener).error();
  if (serves_local_users()) OUTBOARD_TRY(open_socket_file(url));
  return add(std::move(*listener), url.substr(0, url.find(':')), true);
}

/// A socket file has mode 0600. If it is opened to all users, their credentials decide which of them may
/// connect.
status daemon::open_socket_file(const std::string& url) const {
  if (!traits_of(url).has_socket_file || ::chmod(std::string(address_of(url)).c_str(), 0666) == 0) return {};
  return failure(fmt::format("cannot open {} to the users of allow_users: {}", url, errno_text(errno)));
}

status daemon::adopt(unique_fd socket) {
  const auto about = inspect_passed_socket(socket.get());
  if (!about.ok()) return about.error();
  if (about->foreign && !lets_in_strangers()) {
    return failure(
        "a socket was passed that other machines can reach; give --token-file FILE, or --insecure to let "
        "them in "
        "without a token");
  }
  transport::transport* t = settings_.transports->find(about->scheme);
  CHECK(t != nullptr);
  auto listener = t->adopt_listener(std::move(socket));
  if (!listener.ok()) return std::move(listener).error();
  return add(std::move(*listener), std::string(about->scheme), false);
}

status daemon::add(std::unique_ptr<transport::listener> listener, std::string scheme, bool ours) {
  const std::size_t index = listeners_.size();
  const int fd = listener->poll_descriptor();
  const auto plain = plain_clients_of(settings_.configuration, listener->url());
  log::info("listening on ", listener->url(), plain && *plain != plain_clients::all ? " with TLS" : "");
  if (plain) {
    OUTBOARD_TRY(serve_by_gate(*listener, *plain));
    listeners_.push_back({std::move(listener), std::move(scheme), ours, 0});
    return {};
  }
  const auto watch = loop_.watch(fd, EPOLLIN, [this, index](std::uint32_t) { accept_from(index); });
  if (!watch.ok()) return watch.error();
  listeners_.push_back({std::move(listener), std::move(scheme), ours, *watch});
  return {};
}

/// Does something decide which clients of other machines come in?
bool daemon::lets_in_strangers() const {
  return tokens_.asks(false) || settings_.configuration.insecure ||
         (!settings_.configuration.certificates.client_authority.empty() &&
          settings_.configuration.tls != tls_choice::off);
}

/// Starts the gate with the first listener that needs it.
status daemon::serve_by_gate(const transport::listener& listener, plain_clients plain) {
  if (!gate_.started()) {
    const certificate_settings& files = settings_.configuration.certificates;
    gate_begin_message terms{files.server,
                             files.server_key,
                             files.client_authority,
                             files.own_key,
                             false,
                             settings_.configuration.limits.unauthenticated,
                             settings_.configuration.limits.hello_seconds};
    terms.certificate_required = !files.client_authority.empty() && !tokens_.asks(false);
    OUTBOARD_TRY(gate_.start(terms));
  }
  return gate_.serve(listener.poll_descriptor(), {listener.url(), plain});
}

void daemon::admit(gate_arrival&& arrival) {
  const std::string scheme = arrival.from.substr(0, arrival.from.find(':'));
  if (arrival.local) return guests_.admit_behind_gate(std::move(arrival), scheme);
  auto connection = settings_.transports->find(scheme)->attach(std::move(arrival.client));
  if (connection.ok()) guests_.admit(std::move(*connection), scheme);
}

/// Programs that renew certificates only replace the files.
void daemon::look_at_certificates() {
  gate_.reload(false);
  loop_.after(look_at_certificates_every, [this] { look_at_certificates(); });
}

void daemon::accept_from(std::size_t index) {
  listening& from = listeners_[index];
  // A few at a time, so that a flood on one listener does not starve the rest of the loop.
  for (int i = 0; i < 16; ++i) {
    auto connection = from.listener->accept(transport::deadline::min());
    if (connection.ok()) {
      guests_.admit(std::move(*connection), from.scheme);
      continue;
    }
    // Either no connection waits, or we have no spare descriptor. In the second case the listener stays
    // readable, and without a pause this loop would spin. A client in the backlog does not notice 50 ms.
    if (i == 0) pause(index, connection.error().message);
    return;
  }
}

void daemon::pause(std::size_t index, const std::string& why) {
  log::debug(listeners_[index].listener->url(), ": ", why);
  loop_.change(listeners_[index].watch, 0);
  loop_.after(std::chrono::milliseconds(50),
              [this, index] { loop_.change(listeners_[index].watch, EPOLLIN); });
}

void daemon::on_signal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    switch (static_cast<int>(info.ssi_signo)) {
      case SIGCHLD:
        workers_.reap();
        break;
      case SIGHUP:  // a terminal that was closed, too, and it must not end the server
        if (!settings_.read_again) {
          gate_.reload(true);
        } else if (const auto done = reload({"signal", "signal", ""}); !done.ok()) {
          log::error("the configuration stays as it was: ", done.error().message);
        }
        break;
      case SIGTERM:
      case SIGINT:
        if (draining_) {
          log::warn("second signal: ending ", counted(workers_.sessions(), "session"), " at once");
          stopped_ = true;
        } else {
          begin_to_stop();
        }
        break;
      default:
        break;
    }
  }
}

void daemon::begin_to_stop() {
  draining_ = true;
  workers_.drain();
  if (workers_.sessions() == 0) {
    stopped_ = true;
    return;
  }
  const std::uint32_t seconds = settings_.configuration.limits.drain_seconds;
  const std::string running = counted(workers_.sessions(), "session");
  log::info("stopping: waiting up to ", seconds, " s for ", running);
  notify_manager(fmt::format("STOPPING=1\nSTATUS=waiting for {}", running));
  loop_.after(std::chrono::seconds(seconds), [this] {
    log::warn("ending ", counted(workers_.sessions(), "session"), " that did not finish in time");
    stopped_ = true;
  });
}

void daemon::session_ended() {
  if (draining_ && workers_.sessions() == 0) stopped_ = true;
}

/// A token that was revoked ends what runs by it. Looking at the file's times costs microseconds.
void daemon::look_at_tokens() {
  std::string problem;
  for (const std::string& gone : tokens_.reload(problem)) {
    log::info("the ", gone, " was revoked");
    audit_.write({gone, "", ""}, "was revoked");
    workers_.end_credential(gone, "its token was revoked");
  }
  if (!problem.empty()) log::warn("named tokens stay as they were: ", problem);
  loop_.after(look_at_tokens_every, [this] { look_at_tokens(); });
}

std::vector<std::string> daemon::urls() const {
  std::vector<std::string> list;
  for (const listening& each : listeners_) list.push_back(each.listener->url());
  return list;
}

/// Takes up what may change while the server runs, all of it or nothing. Returns what to tell.
result<std::string> daemon::reload(const audit_log::actor& by) {
  if (!settings_.read_again) return failure("this server was started without a configuration to read again");
  gate_.reload(true);  // certificates are files of their own
  auto fresh = settings_.read_again();
  if (!fresh.ok()) return fresh.error();
  auto live = live_settings_of(*fresh, uuids_of(device_.snapshot));
  if (!live.ok()) return live.error();
  OUTBOARD_TRY(audit_.open(live->audit_file));
  live_ = std::move(*live);
  guests_.change(live_.limits, live_.allowed);
  const auto terms_of = [this](const credential& who) { return live_.identities.terms_of(who); };
  workers_.change(live_.limits, terms_of);
  for (const listening& each : listeners_) {
    const std::string url = each.listener->url();
    if (each.ours && serves_local_users()) OUTBOARD_TRY(open_socket_file(url));
  }
  const std::vector<std::string> kept = kept_until_restart(settings_.as_read, *fresh);
  std::string text = fmt::format("the configuration is read again, with {} of identities",
                                 counted(live_.identities.rows(), "row"));
  if (!kept.empty()) text += fmt::format("; these count from the next start on: {}", fmt::join(kept, ", "));
  log::info(text);
  audit_.write(by, "reloaded the configuration");
  return text;
}

result<std::string> daemon::end_session(const asker& who) {
  const std::string number = who.hello.admin_question.substr(end_question.size());
  std::uint64_t session = 0;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), session);
  const std::string why = fmt::format("{} ended it", who.who.name);
  if (problem != std::errc() || end != number.data() + number.size() || !workers_.end_session(session, why))
    return failure(fmt::format("there is no session {} here; `outboard sessions` lists them", number));
  log::info("session ", session, " is ended, as ", who.who.name, " asked");
  audit_.write({who.who.name, who.identity(), who.from}, "ended a session of others", {{"session", number}});
  return fmt::format("session {} is ended", session);
}

/// Nothing, or why the asker gets no answer.
status daemon::may_ask(const asker& who) const {
  const std::string& question = who.hello.admin_question;
  const bool changes = question == "reload" || question.starts_with(end_question);
  const right needed = changes ? right::administer : right::list;
  if (question != "sessions" && !changes) return {};
  if (who.terms->may.has(needed) || (!changes && who.sees_all())) return {};
  return failure(lacks_right(*who.terms, needed).message);
}

result<shared_answer> daemon::answer(const asker& who) {
  const std::string& question = who.hello.admin_question;
  OUTBOARD_TRY(may_ask(who));
  // Short, and different for each asker.
  if (question == "queue") return answers::make(workers_.describe_queue(who));
  if (question == "reload" || question.starts_with(end_question)) {
    const auto done =
        question == "reload" ? reload({who.who.name, who.identity(), who.from}) : end_session(who);
    if (!done.ok()) return done.error();
    return answers::make(*done);
  }
  // A list that was made before a session came or went is never shared.
  const std::string state =
      fmt::format("{} {} {}", workers_.totals().sessions, workers_.sessions(), workers_.waiting());
  const std::string seen = question == "sessions" && who.sees_all()
                               ? std::string()
                               : fmt::format("{} {} {}", who.who.name, who.identity(), who.sees_all());
  return answers_.get(fmt::format("{} {} {}", question, state, seen), [&]() -> result<std::string> {
    if (question == "devices") return devices_json(device_, *who.terms);
    if (question == "sessions") return sessions_json(workers_, device_.kind, who);
    if (question == "doctor") return doctor(who);
    return failure(fmt::format(
        "unknown question \"{}\"; known: devices, sessions, doctor, queue, reload, end NUMBER", question));
  });
}

std::string daemon::doctor(const asker& who) const {
  daemon_facts facts{.device = device_,
                     .listening = urls(),
                     .transports = {},
                     .token_required = tokens_.asks(false),
                     .tls = name(settings_.configuration.tls),
                     .fingerprint = gate_.facts().fingerprint,
                     .certificate_warning = gate_.facts().warning,
                     .draining = draining_,
                     .confine = settings_.configuration.confine,
                     .confine_cuda = confine_cuda_of(settings_.configuration, device_),
                     .pool = settings_.configuration.pool,
                     .limits = live_.limits,
                     .guests = guests_.present(),
                     .refused = guests_.refused(),
                     .started = started_};
  for (const std::string_view scheme : settings_.transports->schemes()) facts.transports.emplace_back(scheme);
  return doctor_json(facts, workers_, who);
}

status daemon::serve() {
  const auto signals = loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { on_signal(); });
  if (!signals.ok()) return signals.error();
  if (!settings_.tokens_file.empty()) look_at_tokens();
  if (gate_.started()) look_at_certificates();
  if (settings_.on_ready) settings_.on_ready(urls());
  notify_manager(fmt::format("READY=1\nSTATUS=serving the {} device", device_.kind));
  // A server that runs for long starts the driver's NVML early, so that a program that only lists devices
  // need not wait for nvmlInit.
  if (device_.kind == "vendor" && settings_.configuration.pool.per_key > 0) {
    loop_.after(monitor_delay, [this] {
      if (const status started = monitor_.start(); !started.ok())
        log::warn("no NVML helper: ", started.error().message);
    });
  }
  while (!stopped_) loop_.run_once();
  notify_manager("STOPPING=1");
  workers_.stop();
  log::info("stopped");
  return {};
}

}  // namespace

status run_daemon(daemon_settings settings) {
  guest_rules rules;
  rules.limits = settings.configuration.limits;
  rules.rings = settings.configuration.rings;
  rules.data_connections = settings.configuration.data_connections > 0;
  rules.compression = settings.configuration.compression;
  rules.image_recall = prepare_cache(settings);
  if (std::string& compilers = settings.configuration.compiler_cache.directory; compilers.empty())
    compilers = default_cache_directory(settings.own_environment, "compilers");
  auto tokens = token_book::open(std::move(settings.token), settings.tokens_file);
  if (!tokens.ok()) return std::move(tokens).error();
  raise_descriptor_limit();
  auto device = choose_device(settings.command, settings.configuration.device, settings.own_environment);
  if (!device.ok()) return std::move(device).error();
  if (!device->no_gpu.empty() && settings.on_no_gpu) settings.on_no_gpu(device->no_gpu);
  OUTBOARD_TRY(choose_visible(settings, device->snapshot));
  OUTBOARD_TRY(check_pageable_access(settings.configuration, *device));
  apply_shape(settings.configuration.shape, device->snapshot);
  auto live = live_settings_of(settings.configuration, uuids_of(device->snapshot));
  if (!live.ok()) return std::move(live).error();
  audit_log audit;
  OUTBOARD_TRY(audit.open(live->audit_file));
  log::info(product, " has ", counted(device->snapshot.devices.size(), "device"), ": ", device->description);
  // Before any socket opens, because from then on signals must be handled.
  auto signals = take_signals();
  if (!signals.ok()) return std::move(signals).error();
  auto loop = event_loop::make();
  if (!loop.ok()) return std::move(loop).error();
  if (needs_tls(settings)) settings.command.arguments.emplace_back("--tls");
  daemon d(std::move(settings), std::move(*tokens), std::move(*device), std::move(rules), std::move(*live),
           std::move(audit), std::move(*loop), std::move(*signals));
  OUTBOARD_TRY(d.listen_everywhere());
  return d.serve();
}

}  // namespace outboard::backend
