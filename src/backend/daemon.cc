#include "backend/daemon.hh"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>

#include "backend/answers.hh"
#include "backend/checkpoints.hh"
#include "backend/device_shape.hh"
#include "backend/gate_keeper.hh"
#include "backend/identity/token_book.hh"
#include "backend/image_cache.hh"
#include "backend/monitor.hh"
#include "backend/notify.hh"
#include "base/errno_text.hh"
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

/// Four descriptors a session, and room for the rest; most systems start programs with 1,024.
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
  if (!fd) return failure("signalfd: " + errno_text(errno));
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
    return failure("descriptor " + std::to_string(fd) +
                   " that was passed is no socket: " + errno_text(errno));
  }
  if (address.ss_family == AF_UNIX)
    return passed_socket{scheme_with(&scheme_traits::has_socket_file).name, false};
  const std::string_view far = scheme_with(&scheme_traits::leaves_host).name;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    return passed_socket{far, (ntohl(v4.sin_addr.s_addr) >> 24) != 127};
  }
  if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    return passed_socket{far, !IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr)};
  }
  return failure("a socket was passed that no transport uses; known are " + url_forms());
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
  if (settings.configuration.tls == tls_choice::off) return false;
  return settings.own_environment("LISTEN_FDS") ||
         std::ranges::any_of(settings.listen, [&](const std::string& url) {
           return plain_clients_of(settings.configuration, url).has_value();
         });
}

class daemon {
 public:
  daemon(daemon_settings settings, token_book tokens, probed_device device, guest_rules rules,
         event_loop loop, unique_fd signals)
      : settings_(std::move(settings)),
        device_(std::move(device)),
        loop_(std::move(loop)),
        signals_(std::move(signals)),
        tokens_(std::move(tokens)),
        any_local_user_(rules.any_peer_user || !rules.peer_users.empty()),
        workers_(loop_, settings_for_workers(), [this] { session_ended(); }),
        monitor_(loop_, settings_for_monitor(), workers_),
        checkpoints_(loop_, {settings_.command, device_.kind, settings_.own_environment}, workers_),
        guests_(
            loop_, with_tokens(std::move(rules)),
            [this](accepted_session&& s) { return begin(std::move(s)); },
            [this](const std::string& question, const std::string& identity) {
              return answer(question, identity);
            }),
        gate_(loop_, settings_.command, settings_.own_environment,
              [this](gate_arrival&& arrival) { admit(std::move(arrival)); }) {}

  status watch_signals();
  status listen_everywhere();
  void serve();

 private:
  struct endpoint {
    std::unique_ptr<transport::listener> listener;
    std::string scheme;
    event_loop::id watch = 0;
  };

  worker_settings settings_for_workers() const;
  monitor_settings settings_for_monitor() const;
  std::optional<wire::refusal> begin(accepted_session&& guest);
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
  void begin_to_stop();
  void session_ended();
  void look_at_tokens();
  guest_rules with_tokens(guest_rules rules) const {
    rules.tokens = &tokens_;
    return rules;
  }
  result<shared_answer> answer(const std::string& question, const std::string& identity);
  result<std::string> make_answer(const std::string& question, const std::string& only_of);
  std::vector<std::string> urls() const;

  daemon_settings settings_;
  probed_device device_;
  event_loop loop_;
  unique_fd signals_;
  token_book tokens_;
  bool any_local_user_;
  workers workers_;
  monitor monitor_;
  checkpoints checkpoints_;
  answers answers_;
  guests guests_;
  gate_keeper gate_;
  std::vector<endpoint> endpoints_;
  const std::chrono::system_clock::time_point started_ = std::chrono::system_clock::now();
  bool draining_ = false, stopped_ = false;
};

worker_settings daemon::settings_for_workers() const {
  worker_settings s;
  s.command = settings_.command;
  s.device = device_.kind;
  s.uuids = uuids_of(device_.snapshot);
  s.may_occupy_device = !exclusive_compute_mode(device_.snapshot);
  s.limits = settings_.configuration.limits;
  s.pool = settings_.configuration.pool;
  s.confine = settings_.configuration.confine;
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
  // The socket file is 0600; who else may come in is then decided by the peer's credentials.
  const bool for_all = any_local_user_ && traits_of(url).has_socket_file;
  if (for_all && ::chmod(std::string(address_of(url)).c_str(), 0666) != 0) {
    return failure("cannot open " + url + " to the users of allow_users: " + errno_text(errno));
  }
  return add(std::move(*listener), url.substr(0, url.find(':')));
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
  return tokens_.asks(false) || settings_.configuration.insecure ||
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
  return !settings_.configuration.certificates.client_authority.empty() && !tokens_.asks(false);
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
        if (draining_) {
          log::warn("second signal: ending ", workers_.sessions(), " sessions at once");
          stopped_ = true;
        } else {
          begin_to_stop();
        }
        break;
      default:
        break;  // SIGHUP: a terminal that closes must not end a server
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
  std::string problem;
  for (const std::string& gone : tokens_.reload(problem)) {
    log::info("the ", gone, " was revoked");
    workers_.end_identity(gone, "its token was revoked");
    monitor_.end_identity(gone);
  }
  gate_.require_certificates(needs_certificates());
  if (!problem.empty()) log::warn("named tokens stay as they were: ", problem);
  loop_.after(look_at_tokens_every, [this] { look_at_tokens(); });
}

std::vector<std::string> daemon::urls() const {
  std::vector<std::string> list;
  for (const endpoint& e : endpoints_) list.push_back(e.listener->url());
  return list;
}

result<shared_answer> daemon::answer(const std::string& question, const std::string& identity) {
  // A list that an identity sees alone is an answer of its own.
  const std::string only_of = question == "sessions" && is_named_token(identity) ? identity : std::string();
  return answers_.get((only_of.empty() ? "of all " : "of one " + only_of + " ") + question,
                      [&] { return make_answer(question, only_of); });
}

result<std::string> daemon::make_answer(const std::string& question, const std::string& only_of) {
  if (question == "devices") return devices_json(device_);
  if (question == "sessions") return sessions_json(workers_, only_of);
  if (question != "doctor")
    return failure("unknown question \"" + question + "\"; known: devices, sessions, doctor");
  daemon_facts facts{.device = device_,
                     .opencl = look_at_opencl(settings_.configuration.confine, settings_.own_environment),
                     .workers = look_at_confinement(settings_.configuration, device_.kind),
                     .listening = urls(),
                     .transports = {},
                     .token_required = tokens_.asks(false),
                     .tls = name(settings_.configuration.tls),
                     .fingerprint = gate_.facts().fingerprint,
                     .certificate_warning = gate_.facts().warning,
                     .draining = draining_,
                     .pool = settings_.configuration.pool,
                     .guests = guests_.present(),
                     .refused = guests_.refused(),
                     .started = started_};
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
  log::info("stopped");
}

/// Where a cache of that name lies, of this service or user; empty: no one says.
std::string default_cache_directory(const variable_source& own, const std::string& name) {
  const auto absolute = [&](const char* variable) -> std::string {
    const char* value = own(variable);
    if (!value || value[0] != '/' || value[1] == '\0') return {};
    return std::string(value).substr(0, std::string_view(value).find(':'));
  };
  if (const std::string service = absolute("CACHE_DIRECTORY"); !service.empty()) return service + "/" + name;
  if (const std::string user = absolute("XDG_CACHE_HOME"); !user.empty()) return user + "/outboard/" + name;
  if (const std::string home = absolute("HOME"); !home.empty()) return home + "/.cache/outboard/" + name;
  return {};
}

/// Whether clients may come that share no memory with us. Sockets that were passed may be of any kind.
bool clients_may_be_far(const daemon_settings& settings) {
  return settings.own_environment("LISTEN_FDS") ||
         !std::ranges::all_of(settings.listen,
                              [](const std::string& url) { return traits_of(url).has_socket_file; });
}

/// Tells the workers where module images are kept. False: nowhere.
bool prepare_cache(daemon_settings& settings) {
  cache_settings& cache = settings.configuration.cache;
  if (!settings.configuration.module_cache || cache.size == 0 || !clients_may_be_far(settings)) return false;
  if (cache.directory.empty()) cache.directory = default_cache_directory(settings.own_environment, "modules");
  const auto opened = cache.directory.empty()
                          ? result<image_cache>(failure("no folder for it: set cache.directory"))
                          : image_cache::open(cache.directory, cache.size);
  if (!opened.ok()) {
    log::warn("no module cache: ", opened.error().message);
    return false;
  }
  log::debug("module cache: ", cache.directory, ", at most ", cache.size, " bytes");
  auto& arguments = settings.command.arguments;
  arguments.insert(arguments.end(),
                   {"--cache-directory", cache.directory, "--cache-size", std::to_string(cache.size)});
  return true;
}

/// Only the devices that the configuration names, in its order, for every worker and for lists.
status choose_visible(daemon_settings& settings, marshal::snapshot& snapshot) {
  const std::vector<std::string>& wanted = settings.configuration.shape.visible;
  if (wanted.empty()) return {};
  const std::vector<std::string> uuids = uuids_of(snapshot);
  const auto chosen = choose_devices(wanted, uuids);
  if (!chosen.ok()) return chosen.error();
  std::vector<marshal::device_facts> devices;
  std::string list;
  for (const std::size_t place : *chosen) {
    devices.push_back(std::move(snapshot.devices[place]));
    list.append(list.empty() ? "" : ",").append(uuids[place]);
  }
  snapshot.devices = std::move(devices);
  settings.own_environment = [own = std::move(settings.own_environment),
                              list = std::move(list)](const char* name) -> const char* {
    return std::string_view(name) == "CUDA_VISIBLE_DEVICES" ? list.c_str() : own(name);
  };
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
  const std::string serves = std::string(product) + " serves " + std::to_string(devices) +
                             (devices == 1 ? " device: " : " devices: ") + device->description;
  // Before any socket is open: what a signal does must be settled by then.
  auto signals = take_signals();
  if (!signals.ok()) return std::move(signals).error();
  auto loop = event_loop::make();
  if (!loop.ok()) return std::move(loop).error();
  if (needs_tls(settings)) settings.command.arguments.emplace_back("--tls");
  daemon d(std::move(settings), std::move(*tokens), std::move(*device), std::move(rules), std::move(*loop),
           std::move(*signals));
  OUTBOARD_TRY(d.watch_signals());
  OUTBOARD_TRY(d.listen_everywhere());
  log::info(serves);
  d.serve();
  return {};
}

}  // namespace outboard::backend
