#include "backend/daemon/daemon.hh"

#include <errno.h>
#include <fmt/format.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>

#include <algorithm>

#include "backend/daemon/audit.hh"
#include "backend/daemon/bounds/answers.hh"
#include "backend/daemon/checkpoints.hh"
#include "backend/daemon/daemon_start.hh"
#include "backend/daemon/device_shape.hh"
#include "backend/daemon/identities.hh"
#include "backend/daemon/monitor.hh"
#include "backend/daemon/notify.hh"
#include "backend/daemon/reread.hh"
#include "backend/gate/gate_keeper.hh"
#include "backend/identity/token_book.hh"
#include "base/errno_text.hh"
#include "base/joined.hh"
#include "base/log.hh"
#include "base/schemes.hh"
#include "base/version.hh"
#include "transport/tls/peer_place.hh"
#include "wire/data_connection.hh"
#include "wire/monitor.hh"

namespace outboard::backend {
namespace {

/// A back-end of one program is often gone by then and needs no helper.
constexpr std::chrono::seconds monitor_delay{2};

/// A client whose token was revoked computes for so long at most.
constexpr std::chrono::milliseconds look_at_tokens_every{300};
/// Programs that renew certificates only replace the files.
constexpr std::chrono::seconds look_at_certificates_every{1};

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
  if (settings.configuration.tls == tls_choice::off) return false;
  return settings.own_environment("LISTEN_FDS") ||
         std::ranges::any_of(settings.listen, [&](const std::string& url) {
           return plain_clients_of(settings.configuration, url).has_value();
         });
}

class daemon {
 public:
  daemon(daemon_settings settings, token_book tokens, identity_book book, probed_device device,
         guest_rules rules, event_loop loop, unique_fd signals)
      : settings_(std::move(settings)),
        device_(std::move(device)),
        loop_(std::move(loop)),
        audit_(loop_),
        signals_(std::move(signals)),
        tokens_(std::move(tokens)),
        any_local_user_(rules.any_peer_user || !rules.peer_users.empty()),
        workers_(loop_, settings_for_workers(), [this] { session_ended(); }),
        monitor_(loop_, settings_for_monitor(), workers_),
        checkpoints_(loop_,
                     {settings_.command, device_.kind, settings_.own_environment, auditor(audit_),
                      settings_.configuration.confine},
                     workers_),
        guests_(
            loop_, with_tokens(std::move(rules)),
            [this](accepted_session&& s) { return begin(std::move(s)); },
            [this](const std::string& question, const proven_identity& who) {
              return answer(question, who);
            }),
        gate_(loop_, settings_.command, settings_.own_environment,
              [this](gate_arrival&& arrival) { admit(std::move(arrival)); }) {
    identities_.take(std::move(book));
    set_places();
  }

  void begin_audit(unique_fd file);
  status watch_signals();
  status listen_everywhere();
  void serve();

 private:
  struct endpoint {
    std::unique_ptr<transport::listener> listener;
    std::string scheme;
    event_loop::id watch = 0;
  };

  worker_settings settings_for_workers();
  monitor_settings settings_for_monitor() const;
  std::optional<wire::refusal> begin(accepted_session&& guest);
  void set_places();
  result<share_ptr> look_at(const proven_identity& who) const;
  result<std::string> read_again();
  status open_sockets();
  status listen_on(const std::string& url);
  status adopt(unique_fd socket);
  status add(std::unique_ptr<transport::listener> listener, std::string scheme);
  bool lets_in_strangers() const;
  status serve_by_gate(const transport::listener& listener, plain_clients plain);
  void admit(gate_arrival&& arrival);
  void look_at_certificates();
  bool needs_certificates() const;
  void accept_from(std::size_t index);
  void pause(std::size_t index, const std::string& why);
  void on_signal();
  void audit_signal(const char* event, const signalfd_siginfo& info);
  void begin_to_stop();
  void session_ended();
  void look_at_tokens();
  guest_rules with_tokens(guest_rules rules) {
    rules.tokens = &tokens_;
    rules.audit = auditor(audit_);
    return rules;
  }
  result<shared_answer> answer(const std::string& question, const proven_identity& who);
  result<std::string> reload(const proven_identity& who, const share& has);
  result<std::string> replace(const replace_question& asked, const proven_identity& who, const share& has);
  result<std::string> make_answer(const std::string& question, const proven_identity& who,
                                  const share& has) const;
  std::vector<std::string> urls() const;

  daemon_settings settings_;
  probed_device device_;
  event_loop loop_;
  audit_file audit_;
  unique_fd signals_;
  token_book tokens_;
  identities identities_;
  bool any_local_user_;
  workers workers_;
  monitor monitor_;
  checkpoints checkpoints_;
  answers answers_;
  guests guests_;
  gate_keeper gate_;
  std::vector<endpoint> endpoints_;
  std::vector<std::string> socket_files_;  ///< that we have made
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  bool draining_ = false, stopped_ = false;
};

worker_settings daemon::settings_for_workers() {
  worker_settings s;
  s.command = settings_.command;
  s.device = device_.kind;
  s.uuids = uuids_of(device_.snapshot);
  for (const auto& d : device_.snapshot.devices) s.boards.push_back(board_number(d.pci_bus_id));
  s.may_occupy_device = !exclusive_compute_mode(device_.snapshot);
  s.reaches_all_memory = reaches_all_memory(device_.snapshot);
  s.limits = settings_.configuration.limits;
  s.pool = settings_.configuration.pool;
  s.confine = settings_.configuration.confine;
  s.group = settings_.groups.own;
  s.compiler_cache = settings_.configuration.compiler_cache;
  s.own_environment = settings_.own_environment;
  s.audit = auditor(audit_);
  return s;
}

monitor_settings daemon::settings_for_monitor() const {
  monitor_settings s;
  s.command = settings_.command;
  s.device = device_.kind;
  for (const auto& d : device_.snapshot.devices) s.visible.push_back(d.pci_bus_id);
  s.in_order = !settings_.configuration.shape.visible.empty();
  s.confine = settings_.configuration.confine;
  s.own_environment = settings_.own_environment;
  return s;
}

std::optional<wire::refusal> daemon::begin(accepted_session&& guest) {
  const bool checkpoints = guest.hello.wanted == wire::purpose_checkpoint;
  auto has = identities_.allowed(guest.who(), checkpoints ? right::checkpoint_own : right::run);
  if (!has.ok()) return wire::refusal{wire::refusal_reason::token, has.error().message};
  guest.has = std::move(*has);
  if (checkpoints) return checkpoints_.begin(std::move(guest));
  if (guest.hello.wanted == wire::purpose_resume) return workers_.resume(std::move(guest));
  if (guest.hello.wanted == wire::purpose_data) return workers_.add_data_connection(std::move(guest));
  if (guest.hello.wanted != wire::purpose_monitor) return workers_.begin_session(std::move(guest));
  if (draining_) return wire::refusal{wire::refusal_reason::busy, "the server is shutting down"};
  return monitor_.begin(std::move(guest));
}

status daemon::listen_everywhere() {
  for (unique_fd& socket : take_passed_sockets()) OUTBOARD_TRY(adopt(std::move(socket)));
  // The default endpoint is for a start without any: sockets that were passed are one.
  if (endpoints_.empty() || !settings_.configuration.listen.empty()) {
    for (const std::string& url : settings_.listen) OUTBOARD_TRY(listen_on(url));
  }
  if (endpoints_.empty()) return failure("nothing to listen on; give --listen URL");
  return {};
}

status daemon::listen_on(const std::string& url) {
  transport::listen_options options;
  options.allow_foreign_hosts = lets_in_strangers();
  auto listener = settings_.transports->listen(url, options);
  if (!listener.ok()) return std::move(listener).error();
  if (traits_of(url).has_socket_file) {
    socket_files_.emplace_back(address_of(url));
    OUTBOARD_TRY(open_sockets());
  }
  return add(std::move(*listener), url.substr(0, url.find(':')));
}

/// A socket file is 0600; where others may come in, the peer's credentials decide who.
status daemon::open_sockets() {
  for (const std::string& file : socket_files_) {
    if (::chmod(file.c_str(), any_local_user_ ? 0666 : 0600) != 0)
      return failure("cannot set who may open " + file + " (allow_users): " + errno_text(errno));
  }
  return {};
}

status daemon::adopt(unique_fd socket) {
  const auto about = inspect_passed_socket(socket.get());
  if (!about.ok()) return about.error();
  if (about->foreign && !lets_in_strangers()) {
    return failure(
        "a socket that was passed can be reached from other hosts; give --token-file or --insecure, or "
        "make a token with `outboard token create`");
  }
  transport::transport* t = settings_.transports->find(about->scheme);
  CHECK(t != nullptr);
  auto listener = t->adopt_listener(std::move(socket));
  if (!listener.ok()) return std::move(listener).error();
  return add(std::move(*listener), std::string(about->scheme));
}

status daemon::add(std::unique_ptr<transport::listener> listener, std::string scheme) {
  const std::size_t index = endpoints_.size();
  const int fd = listener->poll_descriptor();
  const auto plain = plain_clients_of(settings_.configuration, listener->url());
  log::info("listening on ", listener->url(), plain && *plain != plain_clients::all ? " with TLS" : "");
  if (plain) {
    OUTBOARD_TRY(serve_by_gate(*listener, *plain));
    endpoints_.push_back({std::move(listener), std::move(scheme), 0});
    return {};
  }
  auto watch = loop_.watch(fd, EPOLLIN, [this, index](std::uint32_t) { accept_from(index); });
  if (!watch.ok()) return std::move(watch).error();
  endpoints_.push_back({std::move(listener), std::move(scheme), *watch});
  return {};
}

/// Whether something decides which clients of other machines come in.
bool daemon::lets_in_strangers() const {
  return tokens_.asks(false) || settings_.configuration.munge.on || settings_.configuration.insecure ||
         (!settings_.configuration.certificates.client_authority.empty() &&
          settings_.configuration.tls == tls_choice::required);
}

/// Starts the gate with the first listener that needs it.
status daemon::serve_by_gate(const transport::listener& listener, plain_clients plain) {
  if (!gate_.started()) {
    const certificate_settings& files = settings_.configuration.certificates;
    OUTBOARD_TRY(gate_.start({.certificate = files.server,
                              .key = files.server_key,
                              .authority = files.client_authority,
                              .own_key = files.own_key,
                              .certificate_required = needs_certificates(),
                              .unfinished = settings_.configuration.limits.unauthenticated,
                              .seconds = settings_.configuration.limits.hello_seconds}));
  }
  return gate_.serve(listener.poll_descriptor(), {listener.url(), plain});
}

/// Where nothing else says who a client is.
bool daemon::needs_certificates() const {
  return !settings_.configuration.certificates.client_authority.empty() && !tokens_.asks(false) &&
         !settings_.configuration.munge.on;
}

void daemon::admit(gate_arrival&& arrival) {
  const std::string scheme = arrival.from.substr(0, arrival.from.find(':'));
  if (arrival.local) return guests_.admit_behind_gate(std::move(arrival), scheme);
  auto connection = settings_.transports->find(scheme)->attach(std::move(arrival.client));
  if (connection.ok()) guests_.admit(std::move(*connection), scheme);
}

void daemon::look_at_certificates() {
  gate_.reload();
  loop_.after(look_at_certificates_every, [this] { look_at_certificates(); });
}

void daemon::accept_from(std::size_t index) {
  endpoint& e = endpoints_[index];
  // A few at a time, so that a flood on one listener does not starve the rest of the loop.
  for (int i = 0; i < 16; ++i) {
    auto connection = e.listener->accept(transport::deadline::min());
    if (connection.ok()) {
      guests_.admit(std::move(*connection), e.scheme);
      continue;
    }
    // Nothing there any more, or no descriptor to spare: then the listener stays readable, and without a
    // pause this loop would spin. Whoever waits in the backlog does not notice 50 ms.
    if (i == 0) pause(index, connection.error().message);
    return;
  }
}

void daemon::pause(std::size_t index, const std::string& why) {
  log::debug(endpoints_[index].listener->url(), ": ", why);
  loop_.change(endpoints_[index].watch, 0);
  loop_.after(std::chrono::milliseconds(50),
              [this, index] { loop_.change(endpoints_[index].watch, EPOLLIN); });
}

void daemon::on_signal() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    switch (static_cast<int>(info.ssi_signo)) {
      case SIGCHLD:
        workers_.reap();
        break;
      case SIGTERM:
      case SIGINT:
        audit_signal(draining_ ? "ended-at-once" : "drain", info);
        if (draining_) {
          log::warn("second signal: ending ", workers_.sessions(), " sessions at once");
          stopped_ = true;
        } else {
          begin_to_stop();
        }
        break;
      default:  // SIGHUP, which a terminal that closes sends, too
        audit_signal("reload", info);
        (void)read_again().ok();
        break;
    }
  }
}

/// The kernel says whose process sent it; where it did so itself, it was the terminal.
void daemon::audit_signal(const char* event, const signalfd_siginfo& info) {
  const bool by_process = info.ssi_code == SI_USER || info.ssi_code == SI_QUEUE;
  audit_.write(event, {{"by", by_process ? person_of(info.ssi_uid) : "kernel"},
                       {"process", static_cast<std::int64_t>(by_process ? info.ssi_pid : 0)}});
}

void daemon::begin_audit(unique_fd file) {
  audit_.take(settings_.configuration.audit_file, std::move(file));
  audit_.write(
      "server-began",
      {{"process", std::int64_t{::getpid()}}, {"product", std::string(product)}, {"device", device_.kind}});
}

void daemon::begin_to_stop() {
  draining_ = true;
  workers_.drain();
  if (workers_.sessions() == 0) {
    stopped_ = true;
    return;
  }
  const std::uint32_t seconds = settings_.configuration.limits.drain_seconds;
  log::info("stopping: waiting up to ", seconds, " s for ", workers_.sessions(), " sessions");
  notify_manager("STOPPING=1\nSTATUS=waiting for " + std::to_string(workers_.sessions()) + " sessions");
  loop_.after(std::chrono::seconds(seconds), [this] {
    log::warn("ending ", workers_.sessions(), " sessions that are still running");
    stopped_ = true;
  });
}

void daemon::session_ended() {
  if (draining_ && workers_.sessions() == 0) stopped_ = true;
}

/// A token that was revoked ends what runs by it. Looking at the file's times costs microseconds.
void daemon::look_at_tokens() {
  const token_changes changes = tokens_.reload();
  for (const std::string& made : changes.made) audit_.write("token-made", {{"of", made}});
  for (const std::string& gone : changes.gone) {
    log::info("the ", gone, " was revoked");
    audit_.write("token-revoked", {{"of", gone}});
    workers_.end_identity(gone, "its token was revoked");
    monitor_.end_some([&](const proven_identity& who) { return who.person == gone; });
  }
  set_places();
  gate_.require_certificates(needs_certificates());
  if (!changes.problem.empty()) log::warn("named tokens stay as they were: ", changes.problem);
  loop_.after(look_at_tokens_every, [this] { look_at_tokens(); });
}

std::vector<std::string> daemon::urls() const {
  std::vector<std::string> list;
  for (const endpoint& e : endpoints_) list.push_back(e.listener->url());
  return list;
}

/// How many places there are, and whether for several.
void daemon::set_places() {
  identities_.set_apart(tokens_.named() > 0 || any_local_user_ || settings_.configuration.munge.on ||
                        !settings_.configuration.certificates.client_authority.empty());
  workers_.set_places(settings_.configuration.limits, identities_.several());
}

/// What somebody whose session runs may have from now on, or why it may not go on.
result<share_ptr> daemon::look_at(const proven_identity& who) const {
  if (who.user && !guests_.may_come(*who.user, who.by_munge))
    return failure(who.person + " may no longer use this server (allow_users)");
  return identities_.allowed(who, right::run);
}

/// All of it is looked at before any of it counts.
result<std::string> daemon::read_again() {
  const auto refuse = [](const std::string& why) {
    log::warn("the configuration stays as it was: ", why);
    return failure(why);
  };
  if (!settings_.read_again) return refuse("this server cannot read it again");
  const auto read = settings_.read_again();
  if (!read.ok()) return refuse(read.error().message);
  guest_rules rules;
  if (const status known = resolve_users(read->allow_users, rules); !known.ok())
    return refuse(known.error().message);
  auto book = identities::read(*read, uuids_of(device_.snapshot));
  if (!book.ok()) return refuse(book.error().message);
  auto audit = audit_file::open(read->audit_file);
  if (!audit.ok()) return refuse(audit.error().message);

  audit_.take(read->audit_file, std::move(*audit));
  take_what_counts_now(settings_.configuration, *read);
  tell_of_limits_without_groups(*read, settings_.groups);
  const std::vector<std::string> later = changed_for_the_next_start(settings_.as_read, *read);
  log::set_level(read->log);
  any_local_user_ = rules.any_peer_user || !rules.peer_users.empty();
  guests_.let_in(std::move(rules.peer_users), rules.any_peer_user);
  if (const status opened = open_sockets(); !opened.ok()) log::warn(opened.error().message);
  identities_.take(std::move(*book));
  set_places();
  const auto look = [this](const proven_identity& who) { return look_at(who); };
  workers_.look_again(look);
  monitor_.end_some([&](const proven_identity& who) { return !look(who).ok(); });
  log::info("the configuration was read again: ", read->identities.size(), " identities",
            later.empty() ? "" : "; from the next start on count: " + joined(later, ", "));
  return reread_json(*read, later);
}

result<shared_answer> daemon::answer(const std::string& question, const proven_identity& who) {
  const auto has = identities_.find(who);
  if (!has.ok()) return has.error();
  if (question == "reload") return answers_.of_act([&] { return reload(who, **has); });
  if (const auto asked = decode_replace_question(question))
    return answers_.of_act([&] { return replace(*asked, who, **has); });
  // Whoever may ask gets the answer of all who may see as much.
  const bool of_all = question == "devices" ? !identities_.several()
                                            : question == "sessions" && allows((*has)->may, right::list_all);
  const std::string as = of_all ? "of all" : "of one " + who.person + '\0' + (*has)->account + '\0';
  return answers_.get(as + " " + question, [&] { return make_answer(question, who, **has); });
}

result<std::string> daemon::reload(const proven_identity& who, const share& has) {
  OUTBOARD_TRY(check_right(who.person, has, right::administer));
  audit_.write("reload", {{"by", who.person}, {"identity", has.name()}});
  auto done = read_again();
  return done.ok() ? std::move(*done) : problem_json(done.error().message);
}

result<std::string> daemon::replace(const replace_question& asked, const proven_identity& who,
                                    const share& has) {
  OUTBOARD_TRY(check_right(who.person, has, right::administer));
  const auto session = static_cast<std::int64_t>(asked.session);
  if (asked.patience)
    audit_.write("replace", {{"by", who.person}, {"identity", has.name()}, {"session", session}});
  return replace_json(workers_, asked);
}

result<std::string> daemon::make_answer(const std::string& question, const proven_identity& who,
                                        const share& has) const {
  if (question == "devices") return devices_json(device_, has);
  if (question == "sessions") {
    if (allows(has.may, right::list_all)) return sessions_json(workers_, {});
    OUTBOARD_TRY(check_right(who.person, has, right::list_own));
    return sessions_json(workers_, who.person);
  }
  if (question != "doctor")
    return failure("unknown question \"" + question +
                   "\"; known: devices, sessions, doctor, reload, replace");
  daemon_facts facts{.device = device_,
                     .opencl = look_at_opencl(settings_.configuration.confine, settings_.own_environment),
                     .workers = look_at_confinement(settings_.configuration, device_),
                     .cgroup = settings_.configuration.cgroup,
                     .groups = settings_.groups,
                     .listening = urls(),
                     .transports = {},
                     .token_required = tokens_.asks(false),
                     .munge = settings_.configuration.munge.on,
                     .tls = name(settings_.configuration.tls),
                     .fingerprint = gate_.facts().fingerprint,
                     .certificate_warning = gate_.facts().warning,
                     .draining = draining_,
                     .pool = settings_.configuration.pool,
                     .guests = guests_.present(),
                     .refused = guests_.refused(),
                     .started = started_,
                     .asker = who.person,
                     .has = has,
                     .several = identities_.several(),
                     .audit_file = settings_.configuration.audit_file};
  for (const std::string_view scheme : settings_.transports->schemes()) facts.transports.emplace_back(scheme);
  return doctor_json(facts, workers_);
}

status daemon::watch_signals() {
  auto watch = loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { on_signal(); });
  return watch.ok() ? status() : status(std::move(watch).error());
}

void daemon::serve() {
  if (!settings_.tokens_file.empty()) look_at_tokens();
  if (gate_.started()) look_at_certificates();
  if (settings_.on_ready) settings_.on_ready(urls());
  notify_manager("READY=1\nSTATUS=serving the " + device_.kind + " device");
  // Of a driver's NVML, on a server that is there for long: a program that only lists devices then need not
  // wait for nvmlInit.
  if (device_.kind == "vendor" && settings_.configuration.pool.per_key > 0) {
    loop_.after(monitor_delay, [this] {
      if (const status started = monitor_.start(); !started.ok())
        log::warn("no NVML helper: ", started.error().message);
    });
  }
  while (!stopped_) loop_.run_once();
  notify_manager("STOPPING=1");
  workers_.stop();
  audit_.write("server-ended", {{"process", std::int64_t{::getpid()}}});
  log::info("stopped");
}

}  // namespace

status run_daemon(daemon_settings settings) {
  auto groups = choose_groups(settings.configuration.cgroup);
  if (!groups.ok()) return std::move(groups).error();
  settings.groups = std::move(*groups);
  tell_of_limits_without_groups(settings.configuration, settings.groups);
  guest_rules rules;
  rules.limits = settings.configuration.limits;
  rules.munge = settings.configuration.munge;
  rules.rings = settings.configuration.rings;
  rules.data_connections = settings.configuration.data_connections > 0;
  rules.compression = settings.configuration.compression;
  rules.image_recall = prepare_cache(settings);
  if (std::string& compilers = settings.configuration.compiler_cache.directory; compilers.empty())
    compilers = default_cache_directory(settings.own_environment, "compilers");
  OUTBOARD_TRY(resolve_users(settings.configuration.allow_users, rules));
  std::optional<wire::token_verifier> shared;
  if (!settings.token.empty()) {
    shared = wire::verifier_of(settings.token);
    // Nobody needs it any more, so no process of ours keeps it.
    ::explicit_bzero(settings.token.data(), settings.token.size());
    settings.token.clear();
  }
  auto tokens = token_book::open(shared, settings.tokens_file);
  if (!tokens.ok()) return std::move(tokens).error();
  raise_descriptor_limit();
  auto device = choose_device(settings.command, settings.configuration.device, settings.own_environment);
  if (!device.ok()) return std::move(device).error();
  if (!device->no_gpu.empty() && settings.on_no_gpu) settings.on_no_gpu(device->no_gpu);
  OUTBOARD_TRY(choose_visible(settings, device->snapshot));
  apply_shape(settings.configuration.shape, device->snapshot);
  const std::size_t devices = device->snapshot.devices.size();
  const std::string serves = fmt::format("{} serves {} {}: {}", product, devices,
                                         devices == 1 ? "device" : "devices", device->description);
  // Before any socket is open: what a signal does must be settled by then.
  auto signals = take_signals();
  if (!signals.ok()) return std::move(signals).error();
  auto book = identities::read(settings.configuration, uuids_of(device->snapshot));
  if (!book.ok()) return std::move(book).error();
  auto audit = audit_file::open(settings.configuration.audit_file);
  if (!audit.ok()) return std::move(audit).error();
  auto loop = event_loop::make();
  if (!loop.ok()) return std::move(loop).error();
  if (needs_tls(settings)) settings.command.arguments.emplace_back("--tls");
  daemon d(std::move(settings), std::move(*tokens), std::move(*book), std::move(*device), std::move(rules),
           std::move(*loop), std::move(*signals));
  d.begin_audit(std::move(*audit));
  OUTBOARD_TRY(d.watch_signals());
  OUTBOARD_TRY(d.listen_everywhere());
  log::info(serves);
  d.serve();
  return {};
}

}  // namespace outboard::backend
