#include "tool/child.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/errno_text.hh"
#include "tool/exit_status.hh"

namespace outboard::tool {

result<child_pipe> make_child_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failure("pipe: " + errno_text(errno));
  return child_pipe{unique_fd(ends[0]), unique_fd(ends[1])};
}

result<pid_t> start_child(std::vector<std::string> command, child_pipe& pipe, int dies_by,
                          const child_becomes& become) {
  std::vector<char*> arguments;
  for (std::string& text : command) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  const pid_t owner = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return failure("fork: " + errno_text(errno));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, dies_by);
    // We may have ended before it asked for that.
    ::_exit(::getppid() == owner ? become(arguments.data()) : exit_run_failed);
  }
  pipe.theirs.reset();
  return child;
}

int status_of_child(int wait_status) {
  return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

}  // namespace outboard::tool
