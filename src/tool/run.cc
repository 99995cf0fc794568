#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "base/configuration/settings.hh"
#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/joined.hh"
#include "base/log.hh"
#include "tool/ask.hh"
#include "tool/child.hh"
#include "tool/death_reports.hh"
#include "tool/exit_status.hh"
#include "tool/locate.hh"
#include "tool/opencl_vendors.hh"
#include "tool/package_hint.hh"
#include "tool/private_backend.hh"
#include "tool/profilers.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

constexpr std::array<int, 6> forwarded{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

struct launched {
  pid_t process = -1;
  int exec_error = 0;  ///< the program could not be executed
};

/// What the program finds of us.
struct surroundings {
  std::string libraries;       ///< folder of the front-end libraries
  std::string opencl_vendors;  ///< folder of the OpenCL loader; empty: the usual one
  std::vector<std::string> servers;
  bool profilers = false;    ///< it may have one inside, which gets our libcupti
  std::string reports;       ///< where it reports its sessions; empty: nowhere
  bool other_files = false;  ///< --config: the files that it will read are not those that were read
};

/// A file that the program's processes report into. What an earlier run has left goes; they do not overwrite
/// each other's.
void set_report(const char* variable, const std::string& file) {
  if (file.empty()) return;
  struct stat about {};
  if (::lstat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode)) ::unlink(file.c_str());
  const bool plain = file.front() != '+' && file != "-";
  ::setenv(variable, ((plain ? "+" : "") + file).c_str(), 1);
}

void set_program_environment(const config& c, const surroundings& around) {
  const char* old = ::getenv("LD_LIBRARY_PATH");
  const std::string path = around.libraries + (old && *old ? std::string(":") + old : "");
  ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  give_profilers(around.libraries, around.profilers, c.profile_summary || !c.profile.empty());
  ::setenv("OUTBOARD_SERVER", joined(around.servers, ",").c_str(), 1);
  if (around.reports.empty()) {
    ::unsetenv(frontend::run_variable);
  } else {
    ::setenv(frontend::run_variable, around.reports.c_str(), 1);
  }
  if (!around.opencl_vendors.empty()) ::setenv("OCL_ICD_VENDORS", around.opencl_vendors.c_str(), 1);
  for (const setting& s : all_settings()) {
    // The program reads the usual files: what was set here counts before them, also where it is the default,
    // and all counts where other files were read in their place. Three it gets in another form.
    const bool counts = around.other_files || c.origins.contains(s.key());
    const std::string text = s.is_for(reader::program) && counts ? s.text(c) : "";
    if (!text.empty() && !s.variable.empty() && s.name != "server" && s.name != "trace" &&
        s.name != "profile")
      ::setenv(std::string(s.variable).c_str(), text.c_str(), 1);
  }
  set_report("OUTBOARD_TRACE", c.trace);
  set_report("OUTBOARD_PROFILE", c.profile);
}

/// The child's side: the environment changes here only, so nothing of it reaches the back-end.
int become_program(const config& c, const surroundings& around, const sigset_t& mask, char* const* arguments,
                   int report) {
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  set_program_environment(c, around);
  ::execvp(arguments[0], arguments);
  const int code = errno;
  (void)!::write(report, &code, sizeof code);
  return exit_not_found;
}

result<launched> launch(const config& c, const surroundings& around, const sigset_t& mask,
                        std::vector<std::string> command) {
  auto pipe = make_child_pipe();
  if (!pipe.ok()) return pipe.error();
  // A killed `outboard run` is a killed program.
  const auto process = start_child(std::move(command), *pipe, SIGKILL, [&](char* const* arguments) {
    return become_program(c, around, mask, arguments, pipe->theirs.get());
  });
  if (!process.ok()) return process.error();
  launched program{*process, 0};
  int code = 0;
  ssize_t got;
  while ((got = ::read(pipe->ours.get(), &code, sizeof code)) < 0 && errno == EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof code)) program.exec_error = code;
  return program;
}

/// Whether a signal has come; until then it serves the programs that report their sessions.
bool wait_for_signal(int signals, death_reports& reports) {
  std::vector<pollfd> list{{signals, POLLIN, 0}};
  reports.add_to(list);
  if (::poll(list.data(), list.size(), -1) < 0) return false;
  reports.look();
  return list.front().revents != 0;
}

/// Waits for the program, and passes on what others send to us. A terminal sends its signals to the whole
/// group: the program has had them already.
int wait_for(pid_t program, int signals, death_reports* reports) {
  while (true) {
    int wait_status = 0;
    const pid_t got = ::waitpid(program, &wait_status, WNOHANG);
    if (got == program) {
      if (reports) reports->ended(program);
      return status_of_child(wait_status);
    }
    if (got < 0 && errno != EINTR) return exit_run_failed;
    if (reports && !wait_for_signal(signals, *reports)) continue;
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (number != SIGCHLD && info.ssi_code <= 0) ::kill(program, number);
  }
}

/// Signals arrive by descriptor from here on; `before` is the program's mask.
unique_fd take_signals(sigset_t& before) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : forwarded) sigaddset(&set, number);
  CHECK(::sigprocmask(SIG_BLOCK, &set, &before) == 0);
  return unique_fd(::signalfd(-1, &set, SFD_CLOEXEC));
}

int tell_why_it_did_not_start(const std::string& program, int code) {
  if (code != ENOENT && code != ENOTDIR)
    return complain(exit_not_executable, program + ": " + errno_text(code));
  const std::string_view hint = package_hint(program);
  return complain(exit_not_found,
                  program + ": command not found" + (hint.empty() ? "" : "; " + std::string(hint)));
}

}  // namespace

int verb_run(const common_flags& common, const std::vector<std::string>& command, bool own_program) {
  // Something of ours failed, not the program.
  const auto fail = [own_program](int status, const std::string& sentence) {
    return complain(own_program ? status : exit_run_failed, sentence);
  };
  if (command.empty())
    return fail(exit_usage, "no program is given; usage: outboard run [OPTIONS] [--] COMMAND");
  const auto c = load_with_flags(common);
  if (!c.ok()) return fail(c.error().reason != 0 ? c.error().reason : exit_configuration, c.error().message);
  const auto libraries = find_library_folder(common.library);
  if (!libraries.ok()) return fail(exit_failed, libraries.error().message);

  sigset_t before;
  const unique_fd signals = take_signals(before);
  if (!signals) return fail(exit_failed, "signalfd: " + errno_text(errno));
  // A program that uses CUDA alone needs none: where no folder can be made it runs all the same.
  auto vendors = opencl_vendors::make(*libraries);
  if (!vendors.ok()) log::error("no OpenCL for the program: ", vendors.error().message);
  std::vector<std::string> servers = c->servers;
  std::optional<private_backend> backend;
  std::optional<asking_means> means;
  std::optional<death_reports> reports;
  if (!servers.empty()) {
    // Better one clear sentence now than a CUDA error later.
    auto prepared = prepare_to_ask(*c);
    if (!prepared.ok()) return fail(exit_configuration, prepared.error().message);
    means.emplace(std::move(*prepared));
    const status place = find_place(*means, servers);
    if (!place.ok()) return fail(status_of(place.error()), place.error().message);
    auto made = death_reports::make(*means);
    if (made.ok()) reports.emplace(std::move(*made));
    if (!made.ok()) log::warn("sessions of a program that is killed will linger: ", made.error().message);
  } else {
    auto started = private_backend::start(c->device, common.config_file);
    if (!started.ok()) return fail(exit_failed, started.error().message);
    backend.emplace(std::move(*started));
    servers = {backend->url()};
  }
  const auto program =
      launch(*c,
             {*libraries, vendors.ok() ? vendors->folder() : std::string(), servers, c->cupti && !own_program,
              reports ? reports->name() : std::string(), !common.config_file.empty()},
             before, command);
  if (!program.ok()) return fail(exit_failed, program.error().message);
  const int status = wait_for(program->process, signals.get(), reports ? &*reports : nullptr);
  return program->exec_error == 0 ? status : tell_why_it_did_not_start(command.front(), program->exec_error);
}

}  // namespace outboard::tool
