#include "backend/daemon/session_folders.hh"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "backend/disk/removal.hh"
#include "base/errno_text.hh"
#include "base/log.hh"
#include "base/temporary_folder.hh"
#include "transport/local_socket.hh"

namespace outboard::backend {
namespace {

/// Who ends a daemon waits for it.
constexpr std::chrono::seconds patience_at_the_end{2};

/// What has ended one remover may end the next.
constexpr std::chrono::seconds pause_before_another{30};

/// What is killed does not end at once, and writes until then.
constexpr int attempts_at_the_end = 100;

/// How often the remover looks which workers are still there.
constexpr int milliseconds_between_looks = 1000;

/// A worker as the remover knows it. Its number alone could be another process's by the end.
struct group {
  unique_fd leader;  ///< pidfd_open(2)
  pid_t number = -1;
};

/// Linux 6.9.
constexpr unsigned signal_whole_group = 1u << 2;

bool send_signal(const group& to, int signal, unsigned flags) {
  return ::syscall(SYS_pidfd_send_signal, to.leader.get(), signal, nullptr, flags) == 0;
}

/// Of a process that has ended and was not waited for, too.
bool is_there(const group& g) { return send_signal(g, 0, 0) || errno != ESRCH; }

bool daemon_is_there() {
  pollfd control{worker_control_descriptor, 0, 0};
  return ::poll(&control, 1, 0) == 0;
}

/// Forgets the workers that the daemon has waited for: it has ended their groups, but could not say so
/// perhaps. The order matters: if the daemon is there now, nobody else has waited for those who were gone
/// before.
void forget_those_gone(std::map<std::string, group>& workers) {
  std::vector<std::string> gone;
  for (const auto& [name, worker] : workers) {
    if (!is_there(worker)) gone.push_back(name);
  }
  if (!daemon_is_there()) return;
  for (const std::string& name : gone) workers.erase(name);
}

/// Kernels before 6.9 signal a group by its number only. That is the worker's still: it was at the last look,
/// at most a second ago, and numbers are given out in turn.
void kill_group(const group& g) {
  if (!send_signal(g, SIGKILL, signal_whole_group) && errno == EINVAL) ::kill(-g.number, SIGKILL);
}

std::string name_of(const std::string& folder) { return folder.substr(folder.rfind('/') + 1); }

void remove_or_say(const std::string& above, const std::string& name) {
  const status removed = remove_folder(above, name);
  if (!removed.ok()) log::warn("of a session's folder ", above, "/", name, ": ", removed.error().message);
}

}  // namespace

session_folders::~session_folders() {
  if (remover_.process <= 0) {
    if (!above_.empty()) ::rmdir(above_.c_str());
    return;
  }
  remover_.control.reset();
  const auto until = std::chrono::steady_clock::now() + patience_at_the_end;
  while (::waitpid(remover_.process, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

status session_folders::begin() {
  auto folder = make_temporary_folder("outboard-sessions");
  if (!folder.ok()) return std::move(folder).error();
  above_ = std::move(*folder);
  const status started = start_remover();
  if (!started.ok()) ::rmdir(std::exchange(above_, {}).c_str());
  return started;
}

status session_folders::start_remover() {
  auto remover = start_remover_(above_);
  if (!remover.ok()) return std::move(remover).error();
  remover_ = std::move(*remover);
  return {};
}

bool session_folders::remover_ended(pid_t process) {
  if (process != remover_.process) return false;
  log::warn(
      "the remover of sessions' folders has ended; another one is started with the first session after ",
      pause_before_another.count(), " s");
  remover_ = {};
  not_before_ = std::chrono::steady_clock::now() + pause_before_another;
  return true;
}

result<std::string> session_folders::make() {
  if (above_.empty()) {
    OUTBOARD_TRY(begin());
  } else if (remover_.process < 0 && std::chrono::steady_clock::now() >= not_before_) {
    OUTBOARD_TRY(start_remover());
  }
  const std::string folder = above_ + "/" + std::to_string(++made_);
  if (::mkdir(folder.c_str(), 0700) != 0) return failure("cannot make " + folder + ": " + errno_text(errno));
  return folder;
}

void session_folders::tell(const std::string& what, int descriptor) {
  if (!remover_.control) return;
  // Where the remover has more than enough to do, the rest is done at the end.
  const bool sent =
      descriptor < 0
          ? ::send(remover_.control.get(), what.data(), what.size(), MSG_DONTWAIT | MSG_NOSIGNAL) >= 0
          : transport::send_message(remover_.control.get(), std::as_bytes(std::span(what)), descriptor);
  if (!sent) log::debug("the remover of sessions' folders was not told ", what, ": ", errno_text(errno));
}

void session_folders::give(const std::string& folder, pid_t worker) {
  const unique_fd leader(static_cast<int>(::syscall(SYS_pidfd_open, worker, 0)));
  // Kernels before 5.3 have none. Then what a worker has started may outlive a daemon that is killed: a
  // number that may be another process's is not signalled.
  if (leader) tell(name_of(folder) + " " + std::to_string(worker), leader.get());
}

void session_folders::remove(const std::string& folder) {
  // That of a worker which could not confine itself either is empty.
  if (remover_.process < 0 && ::rmdir(folder.c_str()) == 0) return;
  tell(name_of(folder));
}

int run_folder_remover(const std::string& above, const std::function<bool()>& confine) {
  ::prctl(PR_SET_NAME, "outboard-folder");
  if (confine && !confine()) return 1;
  // A service that ends may tell all its processes: this one still has something to do.
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_IGN);
  std::map<std::string, group> workers;
  std::array<char, 64> packet{};
  while (true) {
    pollfd control{worker_control_descriptor, POLLIN, 0};
    (void)::poll(&control, 1, workers.empty() ? -1 : milliseconds_between_looks);
    forget_those_gone(workers);
    unique_fd leader;
    const ssize_t got = transport::receive_message(worker_control_descriptor,
                                                   std::as_writable_bytes(std::span(packet)), leader);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) break;
    if (got < 0) continue;
    const std::string what(packet.data(), static_cast<std::size_t>(got));
    if (const std::size_t space = what.find(' '); space != what.npos) {
      workers[what.substr(0, space)] = {std::move(leader), std::stoi(what.substr(space))};
    } else {
      workers.erase(what);
      remove_or_say(above, what);
    }
  }
  // Workers end with the daemon by themselves; what they have started is in their groups.
  for (const auto& [name, worker] : workers) kill_group(worker);
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
