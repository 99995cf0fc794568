#include "backend/daemon/workers/child.hh"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>

#include "base/errno_text.hh"
#include "base/sanitizers.hh"

namespace outboard::backend {
namespace {

/// posix_spawn's two settings objects, destroyed in order.
class spawn_settings {
 public:
  spawn_settings() {
    CHECK(posix_spawn_file_actions_init(&actions_) == 0);
    CHECK(posix_spawnattr_init(&attributes_) == 0);
  }
  ~spawn_settings() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  spawn_settings(const spawn_settings&) = delete;
  spawn_settings& operator=(const spawn_settings&) = delete;

  void give(int control) {
    CHECK(posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0) == 0);
    CHECK(posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0);
    // dup2 also when the number is right already: it takes close-on-exec away.
    CHECK(posix_spawn_file_actions_adddup2(&actions_, control, worker_control_descriptor) == 0);
  }

  /// The daemon blocks signals for its signalfd; a child must not inherit that.
  void reset_signals() {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    CHECK(posix_spawnattr_setsigmask(&attributes_, &none) == 0);
    CHECK(posix_spawnattr_setsigdefault(&attributes_, &all) == 0);
    // A group of its own: a terminal's ^C is for the daemon, which then decides about its workers.
    CHECK(posix_spawnattr_setpgroup(&attributes_, 0) == 0);
    CHECK(posix_spawnattr_setflags(
              &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP) == 0);
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

/// Children map their memory from below (at 0x2aaa...), where programs have none of theirs: a driver puts
/// variables of modules and managed memory at addresses of its choice, and a program that has something of
/// its own there cannot use them (seen: one cuFFT plan of many). Of this thread, for its time.
class mapping_from_below {
 public:
  mapping_from_below()
      : before_(under_tsan ? -1 : ::personality(0xffffffff)) {  // TSan knows no mappings there
    if (before_ != -1) ::personality(static_cast<unsigned long>(before_) | ADDR_COMPAT_LAYOUT);
  }
  ~mapping_from_below() {
    if (before_ != -1) ::personality(static_cast<unsigned long>(before_));
  }
  mapping_from_below(const mapping_from_below&) = delete;

 private:
  const int before_;
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (const std::string& text : texts) list.push_back(const_cast<char*>(text.c_str()));
  list.push_back(nullptr);
  return list;
}

}  // namespace

result<child> start_child(const std::string& program, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& environment) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return outboard::error{action::retry, "cannot make a control socket: " + errno_text(errno)};
  }
  child c;
  c.control.reset(pair[0]);
  const unique_fd theirs(pair[1]);
  spawn_settings settings;
  settings.give(theirs.get());
  settings.reset_signals();
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);
  const mapping_from_below layout;
  const int code = ::posix_spawn(&c.process, program.c_str(), &settings.actions_, &settings.attributes_,
                                 argv.data(), envp.data());
  if (code != 0) return outboard::error{action::retry, "cannot start a worker: " + errno_text(code)};
  return c;
}

status die_with_parent(pid_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return failure("PR_SET_PDEATHSIG: " + errno_text(errno));
  // It may have ended before the line above.
  if (::getppid() != parent) return failure("the parent process has ended");
  return {};
}

std::string describe_exit(int wait_status) {
  if (WIFEXITED(wait_status)) return "exit status " + std::to_string(WEXITSTATUS(wait_status));
  if (!WIFSIGNALED(wait_status)) return "wait status " + std::to_string(wait_status);
  const int number = WTERMSIG(wait_status);
  const char* text = ::sigdescr_np(number);
  return "killed by signal " + std::to_string(number) + (text ? std::string(" (") + text + ")" : "");
}

}  // namespace outboard::backend
