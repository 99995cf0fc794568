#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <vector>

#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/log.hh"
#include "base/settings.hh"
#include "tool/ask.hh"
#include "tool/death_reports.hh"
#include "tool/exit_status.hh"
#include "tool/locate.hh"
#include "tool/opencl_vendors.hh"
#include "tool/private_backend.hh"
#include "tool/verbs.hh"

namespace outboard::tool {
namespace {

constexpr std::array<int, 6> forwarded{SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

struct launched {
  pid_t process = -1;
  int exec_error = 0;  ///< the program could not be executed
};

/// What we put into the program's environment besides settings.
struct surroundings {
  std::string libraries;       ///< folder of the client library
  std::string opencl_vendors;  ///< folder for the OpenCL loader; empty: the usual one
  std::vector<std::string> servers;
  std::string reports;  ///< where it reports its sessions; empty: nowhere
};

void set_program_environment(const config& c, const surroundings& around) {
  const char* old = ::getenv("LD_LIBRARY_PATH");
  const std::string path = old && *old ? fmt::format("{}:{}", around.libraries, old) : around.libraries;
  ::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
  ::setenv("OUTBOARD_SERVER", fmt::format("{}", fmt::join(around.servers, ",")).c_str(), 1);
  if (around.reports.empty()) {
    ::unsetenv(frontend::run_variable);
  } else {
    ::setenv(frontend::run_variable, around.reports.c_str(), 1);
  }
  if (!around.opencl_vendors.empty()) ::setenv("OCL_ICD_VENDORS", around.opencl_vendors.c_str(), 1);
  for (const auto& [s, text] : changed_settings(c, reader::program)) {
    if (!s->variable.empty() && s->name != "server")
      ::setenv(std::string(s->variable).c_str(), text.c_str(), 1);
  }
}

/// The child's side. The environment changes only here, so that nothing of it reaches the private server.
[[noreturn]] void become_program(const config& c, const surroundings& around, const sigset_t& mask,
                                 pid_t owner, std::vector<char*>& arguments, int report) {
  // If `outboard run` is killed, so is the program.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != owner) ::_exit(1);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  set_program_environment(c, around);
  ::execvp(arguments[0], arguments.data());
  const int code = errno;
  (void)!::write(report, &code, sizeof code);
  ::_exit(exit_not_found);
}

result<launched> launch(const config& c, const surroundings& around, const sigset_t& mask,
                        std::vector<std::string> command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failure(fmt::format("pipe: {}", errno_text(errno)));
  const unique_fd ours(ends[0]);
  unique_fd theirs(ends[1]);
  std::vector<char*> arguments;
  for (std::string& text : command) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  const pid_t owner = ::getpid();
  launched program;
  program.process = ::fork();
  if (program.process < 0) return failure(fmt::format("fork: {}", errno_text(errno)));
  if (program.process == 0) become_program(c, around, mask, owner, arguments, theirs.get());
  theirs.reset();
  int code = 0;
  ssize_t got;
  while ((got = ::read(ours.get(), &code, sizeof code)) < 0 && errno == EINTR) {
  }
  if (got == static_cast<ssize_t>(sizeof code)) program.exec_error = code;
  return program;
}

/// Returns whether a signal has come; until then it serves the programs that report their sessions.
bool wait_for_signal(int signals, death_reports& reports) {
  std::vector<pollfd> list{{signals, POLLIN, 0}};
  reports.add_to(list);
  if (::poll(list.data(), list.size(), -1) < 0) return false;
  reports.look();
  return list.front().revents != 0;
}

/// Waits for the program, and passes on signals that other processes send to us. A terminal signals the whole
/// process group, so the program has got those already.
int wait_for(pid_t program, int signals, death_reports* reports) {
  while (true) {
    int wait_status = 0;
    const pid_t got = ::waitpid(program, &wait_status, WNOHANG);
    if (got == program) {
      if (reports) reports->ended(program);
      return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
    }
    if (got < 0 && errno != EINTR) return exit_failed;
    if (reports && !wait_for_signal(signals, *reports)) continue;
    signalfd_siginfo info{};
    if (::read(signals, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (number != SIGCHLD && info.ssi_code <= 0) ::kill(program, number);
  }
}

/// From now on signals arrive by the descriptor. `before` gets the mask that the program is to have.
unique_fd take_signals(sigset_t& before) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  for (const int number : forwarded) sigaddset(&set, number);
  CHECK(::sigprocmask(SIG_BLOCK, &set, &before) == 0);
  return unique_fd(::signalfd(-1, &set, SFD_CLOEXEC));
}

}  // namespace

int verb_run(const common_flags& common, const std::vector<std::string>& command) {
  if (command.empty())
    return complain(exit_usage, "no program is given; usage: outboard run [OPTIONS] [--] COMMAND");
  const auto c = load_with_flags(common);
  if (!c.ok()) return complain_of_configuration(c.error());
  if (common.given("device") && !c->servers.empty()) {
    return complain(
        exit_usage,
        fmt::format("--device chooses the device of a private server, but the server {} is named{}, and "
                    "it decides about its device itself; leave one of the two out",
                    c->servers.front(),
                    common.given("server") ? "" : " by OUTBOARD_SERVER or the configuration"));
  }
  const auto libraries = find_library_folder(common.library);
  if (!libraries.ok()) return complain(exit_failed, libraries.error().message);

  sigset_t before;
  const unique_fd signals = take_signals(before);
  if (!signals) return complain(exit_failed, fmt::format("signalfd: {}", errno_text(errno)));
  // If this fails the program runs all the same, because it may use CUDA alone.
  auto vendors = opencl_vendors::make(*libraries);
  if (!vendors.ok()) log::error("the program does not get OpenCL: ", vendors.error().message);
  std::vector<std::string> servers = c->servers;
  std::optional<private_backend> backend;
  std::optional<asking_means> means;
  std::optional<death_reports> reports;
  if (!servers.empty()) {
    auto prepared = prepare_to_ask(*c);
    if (!prepared.ok()) return complain(exit_configuration, prepared.error().message);
    means.emplace(std::move(*prepared));
    // One clear sentence now is better than a CUDA error later.
    const status place = find_place(*means, servers);
    if (!place.ok()) return complain(status_of(place.error()), place.error().message);
    auto made = death_reports::make(*means);
    if (made.ok()) reports.emplace(std::move(*made));
    if (!made.ok()) log::warn("sessions of a program that is killed will linger: ", made.error().message);
  } else {
    auto started = private_backend::start(c->device, common.config_file);
    if (!started.ok()) return complain(exit_failed, started.error().message);
    backend.emplace(std::move(*started));
    servers = {backend->url()};
  }
  // Removes the trace of an earlier run. The programs of one run do not overwrite each other's traces.
  if (struct stat about{};
      !c->trace.empty() && ::stat(c->trace.c_str(), &about) == 0 && S_ISREG(about.st_mode))
    ::unlink(c->trace.c_str());
  const auto program = launch(*c,
                              {*libraries, vendors.ok() ? vendors->folder() : std::string(), servers,
                               reports ? reports->name() : std::string()},
                              before, command);
  if (!program.ok()) return complain(exit_failed, program.error().message);
  const int status = wait_for(program->process, signals.get(), reports ? &*reports : nullptr);
  if (program->exec_error == 0) return status;
  const bool absent = program->exec_error == ENOENT || program->exec_error == ENOTDIR;
  return complain(
      absent ? exit_not_found : exit_not_executable,
      fmt::format("{}: {}", command.front(), absent ? "command not found" : errno_text(program->exec_error)));
}

}  // namespace outboard::tool
