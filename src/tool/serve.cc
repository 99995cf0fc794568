#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "backend/confinement/confinement.hh"
#include "backend/confinement/guard.hh"
#include "backend/daemon/checkpoint_helper.hh"
#include "backend/daemon/compiler_caches.hh"
#include "backend/daemon/daemon.hh"
#include "backend/daemon/session_folders.hh"
#include "backend/gate/gate.hh"
#include "backend/nvml/helper.hh"
#include "backend/worker/activity.hh"
#include "backend/worker/cuda_worker.hh"
#include "backend/worker/worker_main.hh"
#include "base/configuration/settings.hh"
#include "base/fd.hh"
#include "base/log.hh"
#include "base/random.hh"
#include "device/cpu/shown_use.hh"
#include "device/vendor/reservations.hh"
#include "device/vendor/vendor.hh"
#include "tool/client_lines.hh"
#include "tool/exit_status.hh"
#include "tool/locate.hh"
#include "tool/nvml_memory.hh"
#include "tool/parts.hh"
#include "tool/server_log.hh"
#include "tool/verbs.hh"
#include "tool/worker_command.hh"

namespace outboard::tool {
namespace {

constexpr unsigned most_lines_of_a_worker = 32;

/// Of `run`: one user, one program, nothing that outlives it.
void make_private(config& c, const std::string& folder) {
  c.listen = {"unix:" + folder + "/socket"};
  c.token_file.clear();
  c.tokens_file.clear();
  c.allow_users.clear();
  c.audit_file.clear();
  c.identities.clear();
  c.limits.drain_seconds = 0;
  c.pool.per_key = 0;
  c.cache.size = 0;
  // Whoever uses it could do all this without it, and has compilers' caches that are worth something.
  c.confine = confine_choice::off;
  c.cgroup = cgroup_choice::off;
  c.munge.on = false;
}

/// The token that systemd hands to the service, if there is one: where there is no such file the unit has an
/// empty line for it.
std::string token_of_service(const std::string& credentials) {
  std::ifstream file(credentials + "/token");
  return file >> std::ws && file.peek() != std::ifstream::traits_type::eof() ? credentials + "/token" : "";
}

void announce(int descriptor, const std::vector<std::string>& urls) {
  std::string text;
  for (const std::string& url : urls) text += url + "\n";
  const unique_fd pipe(descriptor);
  (void)!::write(pipe.get(), text.data(), text.size());
}

/// Nobody should believe for hours that a GPU computes. Of a private back-end errors alone are logged, and
/// its user reads what `run` says.
void tell_of_no_gpu(bool is_private, const std::string& why) {
  if (is_private) {
    complain(exit_good,
             "no GPU is here and no server is named: kernels run on the cpu device, slowly (outboard doctor "
             "says why; --device cpu silences this)");
  } else {
    log::warn("no GPU can be used, kernels run on the cpu device, slowly: ", why,
              "; with device = \"vendor\" the server does not start without one");
  }
}

void tell_clients_commands(const std::vector<std::string>& urls, const config& as_read,
                           const std::string& token_file) {
  const std::string named = as_read.tokens_file.empty() ? default_tokens_file() : as_read.tokens_file;
  for (const std::string& line : lines_for_clients(urls, as_read, token_file, named)) log::info(line);
}

/// Reads the token for all. Where people find it: what systemd hands over is the service's alone. Empty:
/// there is none.
result<std::string> take_token(config& c, backend::daemon_settings& settings) {
  const char* credentials = std::getenv("CREDENTIALS_DIRECTORY");
  std::string for_people = c.token_file;
  if (c.token_file.empty() && credentials) {
    c.token_file = token_of_service(credentials);
    if (!c.token_file.empty()) for_people = "/etc/outboard/token";
  }
  if (c.token_file.empty()) return for_people;
  auto token = read_token(c.token_file, credentials ? credentials : "");
  if (!token.ok()) return std::move(token).error();
  settings.token = std::move(*token);
  return for_people;
}

/// Where a server keeps the key that it makes for itself: where the service's state is, or this user's.
/// Empty: nobody says where that is.
std::string default_server_key() {
  const auto absolute = [](const char* variable) -> std::string {
    const char* value = std::getenv(variable);
    if (!value || value[0] != '/') return {};
    return std::string(value).substr(0, std::string_view(value).find(':'));
  };
  const std::string name = "/server_key.pem";
  if (const std::string service = absolute("STATE_DIRECTORY"); !service.empty()) return service + name;
  if (const std::string user = absolute("XDG_STATE_HOME"); !user.empty()) return user + "/outboard" + name;
  const std::string home = absolute("HOME");
  return home.empty() ? "" : home + "/.local/state/outboard" + name;
}

/// The configuration as a server takes it.
result<config> read_configuration(const common_flags& common) {
  auto c = load_with_flags(common);
  if (c.ok() && !c->log_given) c->log = log::level::info;
  return c;
}

}  // namespace

int verb_serve(const common_flags& common, const serve_flags& flags) {
  auto c = read_configuration(common);
  if (!c.ok() && common.given("log_format") && common.settings.at("log_format") == "json") {
    // Only the flag is understood yet.
    start_server_log(log::level::error, log_format::json, "serve");
    log::error(c.error().message);
    return c.error().reason != 0 ? c.error().reason : exit_configuration;
  }
  if (!c.ok()) return complain_of_configuration(c.error());
  const config as_read = *c;
  if (!flags.private_folder.empty()) make_private(*c, flags.private_folder);
  start_server_log(c->log, c->format, "serve");
  backend::guard_this_process();
  // Who reads JSON gets JSON from here on.
  const auto refuse = [as_json = c->format == log_format::json](int status, const std::string& sentence) {
    if (!as_json) return complain(status, sentence);
    log::error(sentence);
    return status;
  };
  auto transports = make_transports(*c);
  if (!transports.ok()) return refuse(exit_configuration, transports.error().message);

  backend::daemon_settings settings;
  // A private back-end is its program's, and what changes meanwhile is for the next one.
  if (flags.private_folder.empty()) settings.read_again = [&common] { return read_configuration(common); };
  settings.as_read = as_read;
  const auto token_for_people = take_token(*c, settings);
  if (!token_for_people.ok()) return refuse(exit_configuration, token_for_people.error().message);
  // A private back-end is for one user of this machine.
  if (flags.private_folder.empty())
    settings.tokens_file = c->tokens_file.empty() ? default_tokens_file() : c->tokens_file;
  settings.listen = c->listen;
  if (settings.listen.empty()) {
    settings.listen = {default_endpoint()};
    // A refusal shows when it is really listened on: sockets that were passed take its place.
    (void)prepare_default_endpoint(settings.listen.front()).ok();
  }
  if (std::string& own = c->certificates.own_key; own.empty()) own = default_server_key();
  settings.command = worker_command_line(*c);
  settings.transports = &*transports;
  settings.own_environment = [](const char* name) -> const char* { return std::getenv(name); };
  // The gate starts before it is closed, and whoever waits for its end would wait for the gate's.
  if (flags.ready_descriptor >= 0) ::fcntl(flags.ready_descriptor, F_SETFD, FD_CLOEXEC);
  settings.on_ready = [&](const std::vector<std::string>& urls) {
    if (flags.private_folder.empty()) tell_clients_commands(urls, as_read, *token_for_people);
    if (flags.ready_descriptor >= 0) announce(flags.ready_descriptor, urls);
  };
  settings.on_no_gpu = [&](const std::string& why) { tell_of_no_gpu(!flags.private_folder.empty(), why); };
  settings.configuration = std::move(*c);
  const status served = backend::run_daemon(std::move(settings));
  if (!flags.private_folder.empty()) ::rmdir(flags.private_folder.c_str());
  return served.ok() ? exit_good : refuse(exit_failed, served.error().message);
}

namespace {

/// Where a driver places what it reserves, in all workers of this daemon alike: where hardly any program has
/// something of its own (workers map from 0x2aaa'0000'0000 on). Another daemon has another place.
std::uint64_t choose_reservations() {
  constexpr std::uint64_t begin = 0x2c00'0000'0000, end = 0x2f00'0000'0000, granule = 2u << 20;
  return begin + random_value<std::uint64_t>() % ((end - begin) / granule) * granule;
}

}  // namespace

backend::worker_command worker_command_line(const config& c) {
  // By its number, not its path: an upgrade that replaces the file leaves this daemon's workers what they
  // were.
  backend::worker_command command{"/proc/self/exe", {"outboard", "worker"}};
  const auto add = [&](const char* flag, const std::string& value) {
    command.arguments.emplace_back(flag);
    command.arguments.push_back(value);
  };
  add("--reserve-from", std::to_string(choose_reservations()));
  for (const auto& [s, text] : changed_settings(c, reader::worker)) add("--setting", s->key() + "=" + text);
  for (const auto& [name, library] : c.plugins) add("--plugin", name + "=" + library);
  return command;
}

namespace {

/// What worker_command_line() wrote. False: it is not from there.
bool take_settings(const std::vector<std::string>& given, config& c) {
  for (const std::string& one : given) {
    const std::size_t equals = one.find('=');
    const setting* s = equals == one.npos ? nullptr : find_setting(std::string_view(one).substr(0, equals));
    if (!s || !set_by_text(c, *s, s->name, std::string_view(one).substr(equals + 1)).ok()) return false;
  }
  return true;
}

/// What a worker loads or reads that need not lie where such things usually do, and what the operator adds.
std::vector<std::string> what_a_worker_reads(const config& c, device_choice kind) {
  std::vector<std::string> reads = c.confined_reads;
  std::error_code failed;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  // An upgrade that has replaced the command leaves its libraries where they were.
  if (!failed) reads.push_back((own / "../lib/outboard").lexically_normal());
  if (!failed) reads.push_back((own / "outboard-tls.so").lexically_normal());
  if (kind == device_choice::vendor) {
    for (const std::string& driver : device::vendor::candidates())
      reads.push_back(std::filesystem::path(driver).parent_path());
  } else {
    // Of which the cpu device makes its UUID: it has to be the one that the daemon's lists show.
    reads.emplace_back("/etc/machine-id");
  }
  return reads;
}

/// NAME=LIBRARY each, as worker_command_line() wrote them.
void take_plugins(const std::vector<std::string>& given, config& c) {
  for (const std::string& plugin : given) {
    const std::size_t equals = plugin.find('=');
    if (equals != std::string::npos)
      c.plugins.emplace_back(plugin.substr(0, equals), plugin.substr(equals + 1));
  }
}

/// Before anything of a client's is read.
void guard_worker(const worker_flags& flags, device_choice kind) {
  // Sessions' processes go first where memory runs out, before the daemon and what works for all of them.
  const bool helps = flags.checkpoint > 0 || !flags.remove_folders.empty() || !flags.tidy.directory.empty() ||
                     flags.monitor || flags.probe || flags.gate;
  // A worker that may hold a GPU's memory can be checkpointed: root's server has the right to anyway.
  const bool may_be_vendors = kind == device_choice::vendor || kind == device_choice::automatic;
  const bool checkpoints = !helps && may_be_vendors && ::geteuid() != 0;
  backend::guard_this_process(helps ? 0 : backend::end_workers_first,
                              checkpoints ? backend::looked_into_by::user : backend::looked_into_by::root);
}

/// A helper's confining of itself. Empty: it does not.
std::function<bool()> confining(const worker_flags& flags, backend::helper_terms terms) {
  if (!flags.confine_helper) return {};
  return [terms = std::move(terms)] {
    return backend::confine_a_helper(terms,
                                     [](const char* name) -> const char* { return std::getenv(name); });
  };
}

/// What is no worker, but works for the daemon beside them: its exit status. Nothing: it is a worker.
std::optional<int> run_as_helper(const worker_flags& flags, const config& c, device_choice kind,
                                 const transport::registry& transports) {
  using backend::helper_kind;
  if (flags.checkpoint > 0) {
    return backend::run_checkpoint_helper(
        {.parent = flags.parent,
         .worker = flags.checkpoint,
         .open_device = [&] { return open_device(kind, c.cpu); },
         .transports = &transports,
         .confine = confining(flags, {.kind = helper_kind::checkpoint, .worker = flags.checkpoint})});
  }
  if (const std::string& above = flags.remove_folders; !above.empty()) {
    return backend::run_folder_remover(above,
                                       confining(flags, {.kind = helper_kind::remover, .folder = above}));
  }
  if (const std::string& cache = flags.tidy.directory; !cache.empty()) {
    return backend::run_cache_tidier(flags.parent, flags.tidy,
                                     confining(flags, {.kind = helper_kind::tidier, .folder = cache}));
  }
  if (flags.gate) return backend::run_gate(flags.parent);
  if (!flags.monitor) return std::nullopt;
  backend::helper_terms nvml{.kind = helper_kind::nvml, .vendor = kind == device_choice::vendor};
  if (flags.confine_helper) nvml.reads = what_a_worker_reads(c, kind);
  return backend::nvml::run_helper(
      {.parent = flags.parent,
       .visible = flags.visible,
       .in_order = flags.visible_in_order,
       .shape = c.shape,
       .open = [&](device::activity_source workers) { return open_nvml(kind, c.cpu, std::move(workers)); },
       .transports = &transports,
       .tls = flags.tls,
       .confine = confining(flags, std::move(nvml))});
}

backend::api_opener cuda_for_worker(const worker_flags& flags, const cpu_settings& cpu, device_choice kind) {
  backend::cuda_worker_terms terms{
      .open_device = [&cpu,
                      kind](device::failure_teller tell) { return open_device(kind, cpu, std::move(tell)); },
      .cache = flags.cache,
      .core_dumps = flags.confine.empty()};
  // Only the vendor's device has memory that others see go.
  if (kind == device_choice::vendor) terms.free_memory = nvml_free_memory;
  return backend::open_cuda(std::move(terms));
}

/// The folder of what NVIDIA's driver has compiled.
std::vector<std::string> kept_by_driver(const worker_flags& flags, device_choice kind) {
  const char* const path = std::getenv("CUDA_CACHE_PATH");
  if (flags.opencl || kind != device_choice::vendor || !path) return {};
  return {path};
}

}  // namespace

int verb_worker(const worker_flags& flags) {
  config c;
  const bool understood = take_settings(flags.settings, c);
  // What the gate says of strangers is bounded by their sources.
  start_server_log(c.log, c.format, (flags.gate ? "gate " : "worker ") + std::to_string(::getpid()),
                   c.log == log::level::debug || flags.gate ? 0 : most_lines_of_a_worker);
  take_plugins(flags.plugins, c);
  const auto kind = parse_device(flags.device);
  auto transports = make_transports(c);
  if (!understood || !kind || !transports.ok())
    return complain(exit_usage, "outboard worker is started by outboard serve only");
  guard_worker(flags, *kind);
  device::vendor::reserve_from(flags.reserve_from);
  if (const auto status = run_as_helper(flags, c, *kind, *transports)) return *status;
  // Without a page a session still works: nobody is told what it holds.
  backend::own_activity activity;
  if (!flags.probe) {
    if (auto made = backend::own_activity::make(); made.ok()) {
      activity = std::move(*made);
      if (*kind == device_choice::cpu) device::cpu::show_used_bytes_in(&activity.page->device_bytes);
    }
  }
  std::vector<std::string> reads;
  if (!flags.confine.empty()) reads = what_a_worker_reads(c, *kind);
  std::vector<std::string> writes = c.confined_writes;
  if (!flags.opencl) writes.push_back(flags.cache.directory);
  return backend::run_worker(
      {.parent = flags.parent,
       .probe = flags.probe,
       .tls = flags.tls,
       .warm = flags.warm,
       .no_visible_device = flags.no_visible_device,
       .open_api = flags.opencl ? opencl_of_host() : cuda_for_worker(flags, c.cpu, *kind),
       .confine_to = flags.confine,
       .confined_reads = std::move(reads),
       .confined_writes = std::move(writes),
       .made_writes = kept_by_driver(flags, *kind),
       .cuda_driver = *kind == device_choice::vendor,
       .own_code_alone = *kind != device_choice::vendor && !flags.opencl && c.plugins.empty(),
       .compilers = flags.compilers,
       .transports = &*transports,
       .activity = activity.page ? activity.descriptor.get() : -1,
       .page = activity.page,
       .held_by_page = *kind != device_choice::vendor,
       .shape = c.shape});
}

}  // namespace outboard::tool
