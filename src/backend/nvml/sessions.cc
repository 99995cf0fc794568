#include "backend/nvml/sessions.hh"

namespace outboard::backend::nvml {

void session_book::began(const session_message& session, const unique_fd& activity) {
  entry e{{session.peer, session.host}, static_cast<unsigned>(session.client_process), std::nullopt, nullptr};
  if (activity) {
    if (auto page = shown_activity::open(activity)) e.activity.emplace(std::move(*page));
  }
  const std::lock_guard lock(mutex_);
  sessions_.erase(session.worker);
  sessions_.emplace(session.worker, std::move(e));
}

void session_book::shares(pid_t worker, const unique_fd& memory) {
  auto page = memory_page::open(memory);
  if (!page.ok()) return;
  const std::lock_guard lock(mutex_);
  if (const auto at = sessions_.find(worker); at != sessions_.end())
    at->second.memory = std::make_shared<const memory_page>(std::move(*page));
}

std::optional<std::uint64_t> session_book::left_on(std::uint64_t board, const identity& who) const {
  std::shared_ptr<const memory_page> memory;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [worker, e] : sessions_) {
      if (e.who == who && e.memory) memory = e.memory;
    }
  }
  // Without the lock: what that identity's workers wrote there must not keep others waiting.
  const std::uint64_t limit = memory ? memory->limits().device : 0;
  if (limit == 0) return std::nullopt;
  const auto column = memory->find_column(board);
  return column ? memory->left_of(*column) : limit;
}

void session_book::over(pid_t worker) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(worker);
}

std::vector<own_process> session_book::of(const identity& who) const {
  const std::lock_guard lock(mutex_);
  std::vector<own_process> list;
  for (const auto& [worker, e] : sessions_) {
    if (!(e.who == who)) continue;
    list.push_back({worker, e.client_process, std::nullopt});
    if (e.activity) list.back().device_bytes = e.activity->device_bytes();
  }
  return list;
}

std::uint64_t session_book::held_on(std::uint64_t board, const identity& who, unsigned process) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t own = 0, everybodys = 0;
  bool has_own = false;
  for (const auto& [worker, e] : sessions_) {
    if (!(e.who == who)) continue;
    const std::uint64_t bytes = e.activity ? e.activity->bytes_on(board) : 0;
    everybodys += bytes;
    if (e.client_process != process) continue;
    has_own = true;
    own += bytes;
  }
  return has_own ? own : everybodys;
}

std::vector<device::worker_activity> session_book::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<device::worker_activity> list;
  for (const auto& [worker, e] : sessions_)
    list.push_back({worker, e.activity ? e.activity->device_bytes() : 0});
  return list;
}

}  // namespace outboard::backend::nvml
