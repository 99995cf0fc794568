// What `workers` tells of its sessions and warm workers: for lists, for who asks by a process, for the
// watcher. A part of workers.hh.
#include <algorithm>

#include "backend/daemon/workers/worker_record.hh"

namespace outboard::backend {

void workers::tell_all(session_watcher& watcher) const {
  for (const auto& [id, w] : workers_) {
    if (w->session && w->session->serving)
      watcher.session_began(*w->session, w->activity ? w->activity.get() : -1);
  }
}

std::optional<session_info> workers::find_session(const std::string& identity, const std::string& host,
                                                  std::int32_t process) const {
  for (const auto& [id, w] : workers_) {
    if (!w->session || !w->cuda || !w->session->serving || w->client_gone) continue;
    const session_info& s = *w->session;
    const bool vouched = s.peer_process == -1 || s.peer_process == process;
    if (w->who.person == identity && s.host == host && s.client_process == process && vouched) return s;
  }
  return std::nullopt;
}

session_hold* workers::hold_of(std::uint64_t session) const {
  for (const auto& [id, w] : workers_) {
    if (!w->session || w->session->id != session || !w->session->serving) continue;
    return w->hold && w->successor == 0 ? &*w->hold : nullptr;  // a lock would stay with this worker
  }
  return nullptr;
}

std::vector<session_info> workers::list_sessions() const {
  std::vector<session_info> list;
  for (const auto& [id, w] : workers_) {
    if (!w->session) continue;
    list.push_back(*w->session);
    if (const auto shown = shown_activity::open(w->activity)) list.back().memory_bytes = shown->held_bytes();
    if (!w->group.empty()) list.back().host_memory = control_groups::usage(w->group);
    list.back().ends_in = time_left(*w);
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  return list;
}

std::vector<warm_info> workers::list_warm() const {
  std::vector<warm_info> list;
  for (const auto& [id, w] : workers_) {
    if (w->session || w->predecessor) continue;
    list.push_back({w->process.process, w->ready.has_value(), w->ready.value_or(ready_message{}), w->driver,
                    w->started});
  }
  return list;
}

}  // namespace outboard::backend
