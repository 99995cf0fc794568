#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "backend/confinement/guard.hh"
#include "backend/daemon/checkpoint_helper.hh"
#include "backend/daemon/compiler_caches.hh"
#include "backend/daemon/daemon.hh"
#include "backend/daemon/session_folders.hh"
#include "backend/gate/gate.hh"
#include "backend/nvml/helper.hh"
#include "backend/worker/activity.hh"
#include "backend/worker/worker_main.hh"
#include "base/fd.hh"
#include "base/log.hh"
#include "base/settings.hh"
#include "device/cpu/shown_use.hh"
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

/// Makes the configuration that of a private server: it serves one program of one user, and leaves nothing.
void make_private(config& c, const std::string& folder) {
  c.listen = {fmt::format("unix:{}/socket", folder)};
  c.token_file.clear();
  c.tokens_file.clear();
  c.allow_users.clear();
  c.audit_file.clear();
  c.identity = {};
  c.identities.clear();
  c.limits.drain_seconds = 0;
  c.pool.per_key = 0;
  c.cache.size = 0;
  // The program belongs to the user who runs it, and could do everything without us. Unconfined, its
  // compilers use the user's own caches.
  c.confine = confine_choice::off;
  c.confine_cuda = confine_choice::off;
  c.pageable = pageable_choice::allow;
}

void announce(int descriptor, const std::vector<std::string>& urls) {
  const std::string text = fmt::format("{}\n", fmt::join(urls, "\n"));
  const unique_fd pipe(descriptor);
  (void)!::write(pipe.get(), text.data(), text.size());
}

/// Nobody should believe for hours that a GPU computes. A private server logs errors only, and its user reads
/// what `run` says.
void report_no_gpu(bool is_private, const std::string& why) {
  if (is_private) {
    complain(
        exit_good,
        "there is no GPU here and no server is named, so kernels run on the cpu device, slowly; `outboard "
        "doctor` says why, and --device cpu silences this line");
  } else {
    log::warn("kernels run on the cpu device, slowly, because no GPU can be used: ", why,
              "; with device = \"vendor\" the server does not start without a GPU");
  }
}

}  // namespace

int verb_serve(const common_flags& common, const serve_flags& flags) {
  auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  const config as_read = *c;
  if (!c->log_given) c->log = log::level::info;
  if (!flags.private_folder.empty()) make_private(*c, flags.private_folder);
  start_server_log(c->log, c->format, "serve");
  backend::guard_this_process();
  auto transports = make_transports(*c);
  if (!transports.ok()) return complain(exit_configuration, transports.error().message);
  for (const std::string& url : c->listen) {
    if (const status good = transports->check(url); !good.ok())
      return complain(exit_configuration, fmt::format("listen: {}", good.error().message));
  }

  backend::daemon_settings settings;
  if (flags.private_folder.empty()) {
    settings.as_read = as_read;
    settings.read_again = [common] { return load_with_flags(common); };
  }
  if (c->token_file.empty() && flags.private_folder.empty())
    c->token_file = token_credential([](const char* name) -> const char* { return std::getenv(name); });
  if (!c->token_file.empty()) {
    auto token = read_token(c->token_file);
    if (!token.ok()) return complain(exit_configuration, token.error().message);
    settings.token = std::move(*token);
  }
  if (flags.private_folder.empty())
    settings.tokens_file = c->tokens_file.empty() ? default_tokens_file() : c->tokens_file;
  if (std::string& own = c->certificates.own_key; own.empty()) own = default_server_key();
  settings.listen = c->listen;
  if (settings.listen.empty()) {
    settings.listen = {default_socket()};
    // An error shows when the server listens there. It does not if sockets were passed.
    (void)prepare_default_socket(settings.listen.front()).ok();
  }
  settings.command = worker_command_line(*c);
  settings.transports = &*transports;
  settings.own_environment = [](const char* name) -> const char* { return std::getenv(name); };
  if (flags.ready_descriptor >= 0) {
    // The reader waits for its end, so no other process of ours may keep it open.
    ::fcntl(flags.ready_descriptor, F_SETFD, FD_CLOEXEC);
    settings.on_ready = [&](const std::vector<std::string>& urls) { announce(flags.ready_descriptor, urls); };
  }
  settings.on_no_gpu = [&](const std::string& why) { report_no_gpu(!flags.private_folder.empty(), why); };
  settings.configuration = std::move(*c);
  const status served = backend::run_daemon(std::move(settings));
  if (!flags.private_folder.empty()) ::rmdir(flags.private_folder.c_str());
  return served.ok() ? exit_good : complain(exit_failed, served.error().message);
}

backend::worker_command worker_command_line(const config& c) {
  // Not by the path of our file: after an upgrade replaced it, this daemon still starts workers of its own
  // version.
  backend::worker_command command{"/proc/self/exe", {"outboard", "worker"}};
  const auto add = [&](const char* flag, const std::string& value) {
    command.arguments.emplace_back(flag);
    command.arguments.push_back(value);
  };
  for (const auto& [s, text] : changed_settings(c, reader::worker))
    add("--setting", fmt::format("{}={}", s->key(), text));
  for (const auto& [name, library] : c.plugins) add("--plugin", fmt::format("{}={}", name, library));
  return command;
}

namespace {

/// Only on the vendor's device do other processes see which memory is free.
constexpr std::optional<std::uint64_t> (*no_memory_meter)(const std::string&) = nullptr;

backend::executor executor_of(device_choice kind, bool opencl) {
  if (opencl) return backend::executor::platforms;
  return kind == device_choice::vendor ? backend::executor::driver : backend::executor::interpreter;
}

}  // namespace

/// Takes what worker_command_line() wrote. False: the text is not from there.
bool take_settings(const std::vector<std::string>& given, config& c) {
  for (const std::string& one : given) {
    const std::size_t equals = one.find('=');
    const setting* s = equals == one.npos ? nullptr : find_setting(std::string_view(one).substr(0, equals));
    if (!s || !set_by_text(c, *s, s->name, std::string_view(one).substr(equals + 1)).ok()) return false;
  }
  return true;
}

namespace {

bool is_helper(const worker_flags& flags) {
  return flags.checkpoint > 0 || flags.monitor || flags.gate || !flags.remove_folders.empty() ||
         !flags.tidy.directory.empty();
}

int run_helper(const worker_flags& flags, device_choice kind, const config& c,
               const transport::registry& transports) {
  if (flags.checkpoint > 0) {
    return backend::run_checkpoint_helper({.parent = flags.parent,
                                           .worker = flags.checkpoint,
                                           .open_device = [&] { return open_device(kind, c.cpu); },
                                           .transports = &transports});
  }
  if (flags.gate) return backend::run_gate(flags.parent);
  if (!flags.remove_folders.empty()) return backend::run_folder_remover(flags.remove_folders);
  if (!flags.tidy.directory.empty()) return backend::run_cache_tidier(flags.parent, flags.tidy);
  return backend::nvml::run_helper(
      {.parent = flags.parent,
       .visible = flags.visible,
       .in_order = flags.visible_in_order,
       .shape = c.shape,
       .open = [&](device::activity_source workers) { return open_nvml(kind, c.cpu, std::move(workers)); },
       .transports = &transports});
}

}  // namespace

int verb_worker(const worker_flags& flags) {
  config c;
  const bool understood = take_settings(flags.settings, c);
  // What the gate says of strangers is bounded by their sources.
  start_server_log(c.log, c.format, fmt::format("{} {}", flags.gate ? "gate" : "worker", ::getpid()),
                   c.log == log::level::debug || flags.gate ? 0 : most_lines_of_a_worker);
  for (const std::string& plugin : flags.plugins) {
    const std::size_t equals = plugin.find('=');
    if (equals != std::string::npos)
      c.plugins.emplace_back(plugin.substr(0, equals), plugin.substr(equals + 1));
  }
  const auto kind = parse_device(flags.device);
  auto transports = make_transports(c);
  if (!understood || !kind || !transports.ok())
    return complain(exit_usage, "`outboard worker` is for `outboard serve` alone");
  // All processes that the daemon starts come by here; those of sessions end before the daemon and its
  // helpers.
  backend::guard_this_process(is_helper(flags) ? 0 : backend::end_workers_first);
  if (is_helper(flags)) return run_helper(flags, *kind, c, *transports);
  // A driver reports what memory its device holds; the cpu device does so by the activity page, and reports
  // nothing without one. If memory is limited, the page has what counts against the limit. Where no driver
  // can lock a process, the daemon holds the session by the page.
  backend::own_activity activity;
  if ((*kind != device_choice::vendor || c.shape.memory != 0) && !flags.probe) {
    if (auto made = backend::own_activity::make(); made.ok()) {
      activity = std::move(*made);
      if (*kind == device_choice::cpu) device::cpu::show_used_bytes_in(&activity.page->device_bytes);
    }
  }
  std::optional<backend::confinement> confine;
  if (flags.confine) confine = {.by = executor_of(*kind, flags.opencl), .folder = flags.folder};
  std::function<result<std::unique_ptr<backend::session_api>>()> open_api;
  if (flags.opencl) open_api = open_opencl;
  return backend::run_worker(
      {.parent = flags.parent,
       .probe = flags.probe,
       .warm = flags.warm,
       .open_api = std::move(open_api),
       .open_device = [&] { return open_device(*kind, c.cpu); },
       .confine = std::move(confine),
       .compilers = flags.compilers,
       .tls = flags.tls,
       .transports = &*transports,
       .activity = activity.page ? activity.descriptor.get() : -1,
       .page = activity.page,
       .cache = flags.cache,
       .shape = c.shape,
       .free_memory = *kind == device_choice::vendor ? nvml_free_memory : no_memory_meter});
}

}  // namespace outboard::tool
