#include "tool/child_output.hh"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/errno_text.hh"
#include "base/fd.hh"
#include "tool/exit_status.hh"

namespace outboard::tool {
namespace {

[[noreturn]] void become(std::vector<char*>& arguments, int output, pid_t owner) {
  // SIGTERM: `outboard run` passes it on.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != owner || ::dup2(output, STDOUT_FILENO) < 0) ::_exit(exit_failed);
  ::execv(arguments[0], arguments.data());
  ::_exit(exit_not_found);
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> piece;
  while (true) {
    const ssize_t got = ::read(from, piece.data(), piece.size());
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return text;
  }
}

}  // namespace

result<child_output> run_for_output(std::vector<std::string> command) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failure("pipe: " + errno_text(errno));
  const unique_fd ours(ends[0]);
  unique_fd theirs(ends[1]);
  std::vector<char*> arguments;
  for (std::string& text : command) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  const pid_t owner = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return failure("fork: " + errno_text(errno));
  if (child == 0) become(arguments, theirs.get(), owner);
  theirs.reset();
  child_output out{0, read_all(ours.get())};
  int wait_status = 0;
  while (::waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  out.status = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  return out;
}

}  // namespace outboard::tool
