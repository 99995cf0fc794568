#include "tool/child_output.hh"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "tool/child.hh"
#include "tool/exit_status.hh"

namespace outboard::tool {
namespace {

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
  auto pipe = make_child_pipe();
  if (!pipe.ok()) return pipe.error();
  // SIGTERM: `outboard run` passes it on.
  const auto child = start_child(std::move(command), *pipe, SIGTERM, [&](char* const* arguments) -> int {
    if (::dup2(pipe->theirs.get(), STDOUT_FILENO) < 0) return exit_failed;
    ::execv(arguments[0], arguments);
    return exit_not_found;
  });
  if (!child.ok()) return child.error();
  child_output out{0, read_all(pipe->ours.get())};
  int wait_status = 0;
  while (::waitpid(*child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  out.status = status_of_child(wait_status);
  return out;
}

}  // namespace outboard::tool
