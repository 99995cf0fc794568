#include "tool/private_backend.hh"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/temporary_folder.hh"
#include "marshal/cuda/driver_variables.hh"
#include "tool/child.hh"
#include "tool/exit_status.hh"

namespace outboard::tool {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A socket's path has at most 107 bytes.
constexpr std::size_t longest_folder = 80;

int become_backend(char* const* arguments, int ready) {
  ::fcntl(ready, F_SETFD, 0);
  // A group of its own: a terminal's ^C is for the program.
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  // The program's values travel in its hello; here they would restrict what it may choose from.
  for (const std::string_view name : marshal::driver_variables) ::unsetenv(name.data());
  for (const char* name : {"OUTBOARD_SERVER", "LISTEN_PID", "LISTEN_FDS", "NOTIFY_SOCKET"}) ::unsetenv(name);
  ::execv("/proc/self/exe", arguments);
  return exit_not_found;
}

/// Waits for the first line of the pipe; false when the other end closed without one.
bool wait_until_ready(int pipe) {
  std::array<char, 256> line;
  ssize_t got;
  while ((got = ::read(pipe, line.data(), line.size())) < 0 && errno == EINTR) {
  }
  return got > 0;
}

void end(pid_t process) {
  ::kill(process, SIGTERM);
  const auto patience = clock::now() + 3s;
  while (true) {
    const pid_t got = ::waitpid(process, nullptr, WNOHANG);
    if (got == process || (got < 0 && errno != EINTR)) return;
    if (clock::now() > patience) ::kill(process, SIGKILL);
    std::this_thread::sleep_for(1ms);
  }
}

void remove_folder(const std::string& folder) {
  ::unlink((folder + "/socket").c_str());
  ::rmdir(folder.c_str());
}

}  // namespace

result<private_backend> private_backend::start(device_choice device, const std::string& config_file) {
  auto folder = make_temporary_folder("outboard", longest_folder);
  if (!folder.ok()) return std::move(folder).error();
  private_backend backend(std::move(*folder));
  auto pipe = make_child_pipe();
  if (!pipe.ok()) return pipe.error();
  const int ready = pipe->theirs.get();
  std::vector<std::string> texts{"outboard",   "serve",
                                 "--private",  backend.folder_,
                                 "--device",   std::string(name(device)),
                                 "--ready-fd", std::to_string(ready)};
  // What it says at "info" is not asked for by somebody who runs a program.
  if (!::getenv("OUTBOARD_LOG")) texts.insert(texts.end(), {"--log-level", "error"});
  if (!config_file.empty()) texts.insert(texts.end(), {"--config", config_file});
  // SIGTERM: it removes its socket and folder.
  const auto process = start_child(std::move(texts), *pipe, SIGTERM,
                                   [&](char* const* arguments) { return become_backend(arguments, ready); });
  if (!process.ok()) return process.error();
  backend.process_ = *process;
  if (!wait_until_ready(pipe->ours.get())) return failure("the private back-end did not start");
  return backend;
}

private_backend::private_backend(private_backend&& other) noexcept
    : folder_(std::exchange(other.folder_, {})), process_(std::exchange(other.process_, -1)) {}

private_backend::~private_backend() {
  if (process_ >= 0) end(process_);
  if (!folder_.empty()) remove_folder(folder_);
}

}  // namespace outboard::tool
