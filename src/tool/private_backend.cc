#include "tool/private_backend.hh"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/temporary_folder.hh"
#include "marshal/cuda/driver_variables.hh"

namespace outboard::tool {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A socket's path has at most 107 bytes.
constexpr std::size_t longest_folder = 80;

[[noreturn]] void become_backend(pid_t owner, std::vector<char*>& arguments) {
  // SIGTERM, because it then removes its socket and folder. It gets a process group of its own, because a
  // terminal's ^C is for the program.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::getppid() == owner) {
    // The program's values travel in its hello. Here they would restrict what the program may choose from.
    for (const std::string_view name : marshal::driver_variables) ::unsetenv(name.data());
    for (const char* name : {"OUTBOARD_SERVER", "LISTEN_PID", "LISTEN_FDS", "NOTIFY_SOCKET"})
      ::unsetenv(name);
    ::execv("/proc/self/exe", arguments.data());
  }
  ::_exit(127);
}

/// Waits for the first line of the pipe. False: the other end was closed without one.
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
  ::unlink(fmt::format("{}/socket", folder).c_str());
  ::rmdir(folder.c_str());
}

}  // namespace

result<private_backend> private_backend::start(device_choice device, const std::string& config_file) {
  auto folder = make_temporary_folder("outboard", longest_folder);
  if (!folder.ok()) return std::move(folder).error();
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    ::rmdir(folder->c_str());
    return failure(fmt::format("pipe: {}", errno_text(errno)));
  }
  unique_fd ours(ends[0]), theirs(ends[1]);
  std::vector<std::string> texts{"outboard",   "serve",
                                 "--private",  *folder,
                                 "--device",   std::string(name(device)),
                                 "--ready-fd", fmt::to_string(theirs.get())};
  // Somebody who runs a program does not want to read the server's usual lines.
  if (!::getenv("OUTBOARD_LOG")) texts.insert(texts.end(), {"--log-level", "error"});
  if (!config_file.empty()) texts.insert(texts.end(), {"--config", config_file});
  std::vector<char*> arguments;
  for (std::string& text : texts) arguments.push_back(text.data());
  arguments.push_back(nullptr);
  const pid_t owner = ::getpid();
  const pid_t process = ::fork();
  if (process < 0) {
    ::rmdir(folder->c_str());
    return failure(fmt::format("fork: {}", errno_text(errno)));
  }
  if (process == 0) {
    ::fcntl(theirs.get(), F_SETFD, 0);
    become_backend(owner, arguments);
  }
  private_backend backend(std::move(*folder), process);
  theirs.reset();
  if (!wait_until_ready(ours.get()))
    return failure("the private server did not start; the line above says why");
  return backend;
}

private_backend::private_backend(private_backend&& other) noexcept
    : folder_(std::move(other.folder_)), process_(std::exchange(other.process_, -1)) {}

private_backend::~private_backend() {
  if (process_ < 0) return;
  end(process_);
  remove_folder(folder_);
}

}  // namespace outboard::tool
