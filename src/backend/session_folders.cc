#include "backend/session_folders.hh"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "backend/removal.hh"
#include "base/errno_text.hh"
#include "base/log.hh"
#include "base/temporary_folder.hh"

namespace outboard::backend {
namespace {

/// Who ends a daemon waits for it.
constexpr std::chrono::seconds patience_at_the_end{2};

/// What is killed does not end at once, and writes until then.
constexpr int attempts_at_the_end = 100;

std::string name_of(const std::string& folder) { return folder.substr(folder.rfind('/') + 1); }

void remove_or_say(const std::string& above, const std::string& name) {
  const status removed = remove_folder(above, name);
  if (!removed.ok()) log::warn("of a session's folder ", above, "/", name, ": ", removed.error().message);
}

}  // namespace

session_folders::~session_folders() {
  if (remover_.process <= 0) return;
  remover_.control.reset();
  const auto until = std::chrono::steady_clock::now() + patience_at_the_end;
  while (::waitpid(remover_.process, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

status session_folders::begin() {
  auto folder = make_temporary_folder("outboard-sessions");
  if (!folder.ok()) return std::move(folder).error();
  auto remover = start_remover_(*folder);
  if (!remover.ok()) {
    ::rmdir(folder->c_str());
    return std::move(remover).error();
  }
  above_ = std::move(*folder);
  remover_ = std::move(*remover);
  return {};
}

result<std::string> session_folders::make() {
  if (above_.empty()) OUTBOARD_TRY(begin());
  const std::string folder = above_ + "/" + std::to_string(++made_);
  if (::mkdir(folder.c_str(), 0700) != 0) return failure("cannot make " + folder + ": " + errno_text(errno));
  return folder;
}

void session_folders::tell(const std::string& what) {
  // Where the remover has more than enough to do, the rest is done at the end.
  if (::send(remover_.control.get(), what.data(), what.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    log::debug("the remover of sessions' folders was not told ", what, ": ", errno_text(errno));
}

void session_folders::give(const std::string& folder, pid_t worker) {
  tell(name_of(folder) + " " + std::to_string(worker));
}

void session_folders::remove(const std::string& folder) { tell(name_of(folder)); }

int run_folder_remover(const std::string& above) {
  ::prctl(PR_SET_NAME, "outboard-folder");
  // A service that ends may tell all its processes: this one still has something to do.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);
  std::map<std::string, pid_t> workers;
  std::array<char, 64> packet{};
  while (true) {
    const ssize_t got = ::recv(worker_control_descriptor, packet.data(), packet.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    const std::string what(packet.data(), static_cast<std::size_t>(got));
    if (const std::size_t space = what.find(' '); space != what.npos) {
      workers[what.substr(0, space)] = std::stoi(what.substr(space));
    } else {
      workers.erase(what);
      remove_or_say(above, what);
    }
  }
  // Workers end with the daemon by themselves; what they have started is in their groups.
  for (const auto& [name, worker] : workers) ::kill(-worker, SIGKILL);
  for (int attempt = 0; attempt < attempts_at_the_end; ++attempt) {
    std::error_code failed;
    for (const auto& left : std::filesystem::directory_iterator(above, failed))
      (void)remove_folder(above, left.path().filename().string()).ok();
    if (::rmdir(above.c_str()) == 0) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  log::warn(above, " is left: ", errno_text(errno));
  return 1;
}

}  // namespace outboard::backend
