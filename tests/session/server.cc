#include "server.hh"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "frontend/cuda/tables/cls.hh"
#include "frontend/process.hh"
#include "transport/list/list.hh"

namespace outboard::tests {
namespace {

using namespace std::chrono_literals;

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  char buffer[4096];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
  ::pclose(pipe);
  return text;
}

std::string command() {
  return std::getenv("OUTBOARD_COMMAND") ? std::getenv("OUTBOARD_COMMAND") : "outboard";
}

}  // namespace

server::server(const std::string& device) {
  char name[] = "/tmp/outboard-session-test-XXXXXX";
  folder_ = ::mkdtemp(name);
  url_ = "unix:" + folder_ + "/socket";
  process_ = ::fork();
  if (process_ == 0) {
    ::execl(command().c_str(), "outboard", "serve", "--device", device.c_str(), "--listen", url_.c_str(),
            nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 200 && !std::filesystem::exists(folder_ + "/socket"); ++i)
    std::this_thread::sleep_for(50ms);
}

server::~server() {
  ::kill(process_, SIGTERM);
  ::kill(process_, SIGTERM);
  ::waitpid(process_, nullptr, 0);
  std::filesystem::remove_all(folder_);
}

pid_t server::session_worker() const {
  const std::string json = output_of(command() + " sessions --json --server " + url_);
  const std::size_t at = json.find("\"worker\":");
  return at == std::string::npos ? -1 : std::atoi(json.c_str() + at + 9);
}

bool server::kill_worker() const {
  const pid_t worker = session_worker();
  return worker > 0 && ::kill(worker, SIGKILL) == 0;  // never kill(-1): that is everybody
}

void boot(const server& s) {
  ::setenv("OUTBOARD_SERVER", s.url().c_str(), 1);
  frontend::process::instance().boot(
      {transport::add_all, [](std::string_view) -> void* { return nullptr; }, frontend::cuda::cls_forked});
}

bool in_fresh_process(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int state = 0;
  ::waitpid(child, &state, 0);
  return WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

}  // namespace outboard::tests
