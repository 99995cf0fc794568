// What `workers` knows of its sessions: lists, counts, and look-ups for others.
#include <fmt/format.h>

#include <algorithm>

#include "backend/daemon/worker_entry.hh"
#include "base/counted.hh"
#include "wire/opencl_session.hh"

namespace outboard::backend {

session_info info_of(const accepted_session& session) {
  const wire::hello& hello = session.hello;
  return {.credential = session.who.name,
          .from = session.from,
          .peer = session.peer,
          .identity = session.identity,
          .host = hello.host,
          .user = hello.user,
          .program = hello.program,
          .client_product = hello.product,
          .client_process = hello.process,
          .peer_process = session.process,
          .cuda = hello.wanted != wire::purpose_opencl,
          .started = {},
          .environment = {}};
}

/// Running and waiting ones that belong to it by today's configuration.
std::size_t workers::sessions_of(const std::string& identity) const {
  const auto running = std::ranges::count_if(workers_, [&](const auto& entry) {
    return entry.second->session && entry.second->terms->name == identity;
  });
  return static_cast<std::size_t>(running) + queue_.waiting_of(identity);
}

std::size_t workers::most_of(const identity_terms& who) const {
  const limit_settings& limits = settings_.limits;
  if (who.sessions != 0) return who.sessions;
  if (limits.per_identity != 0) return limits.per_identity;
  return settings_.several_identities() ? (limits.sessions + 3) / 4 : limits.sessions;
}

/// The strictest limits of the identity's sessions and, if it is not null, of one that begins: since a reload
/// they may have rows of different names, but they have one account.
memory_limits workers::limits_of_memory(const std::string& identity, const identity_terms* joins) const {
  const auto of = [this](const identity_terms& terms) {
    memory_limits limits = terms.memory;
    if (limits.session_host == 0) limits.session_host = settings_.limits.host_memory;
    return limits;
  };
  memory_limits all = joins ? of(*joins) : memory_limits{};
  for (const auto& [id, w] : workers_) {
    if (w->session && w->identity == identity) all = stricter(all, of(*w->terms));
  }
  return all;
}

std::string workers::describe_queue(const asker& who) const {
  std::size_t place = 0;
  for (const session_queue::one* each : queue_.in_order(taken())) {
    ++place;
    const accepted_session& waits = each->session;
    if (waits.identity != who.identity() || waits.hello.host != who.hello.host ||
        waits.hello.process != who.hello.process)
      continue;
    const bool own = waits.terms->running != 0 &&
                     (settings_.limits.running == 0 || waits.terms->running < settings_.limits.running);
    return fmt::format("it runs {}{} at a time, and this program is number {} of {} in the queue",
                       counted(own ? waits.terms->running : settings_.limits.running, "session"),
                       own ? fmt::format(" of {}", waits.identity) : "", place, queue_.length());
  }
  return {};
}

void workers::tell_all(session_watcher& watcher) const {
  for (const auto& [id, w] : workers_) {
    if (w->session && w->session->serving)
      watcher.session_began(*w->session, w->activity ? w->activity.get() : -1, *w->memory);
  }
}

std::optional<session_info> workers::find_session(const std::string& identity, const std::string& host,
                                                  std::int32_t process) const {
  for (const auto& [id, w] : workers_) {
    if (!w->session || !w->cuda || !w->session->serving || w->client_gone) continue;
    const session_info& s = *w->session;
    const bool vouched = s.peer_process == -1 || s.peer_process == process;
    if (w->identity == identity && s.host == host && s.client_process == process && vouched) return s;
  }
  return std::nullopt;
}

session_hold* workers::hold_of(std::uint64_t session) const {
  for (const auto& [id, w] : workers_) {
    if (w->session && w->session->id == session && w->session->serving) return w->hold ? &*w->hold : nullptr;
  }
  return nullptr;
}

std::vector<session_info> workers::list_sessions() const {
  std::vector<session_info> list;
  for (const auto& [id, w] : workers_) {
    if (!w->session) continue;
    list.push_back(*w->session);
    list.back().memory_bytes = w->memory->device_bytes();
    list.back().host_memory_bytes = w->memory->host_bytes();
    // The same by numbers that the identity's other workers cannot write.
    if (const auto shown = shown_activity::open(w->activity)) list.back().memory_bytes = shown->held_bytes();
    if (w->interrupted) {
      const auto until = *w->interrupted + std::chrono::seconds(settings_.limits.linger_seconds);
      const std::chrono::duration<double> left = until - event_loop::clock::now();
      list.back().ends_in = std::max(0.0, left.count());
    }
  }
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (const session_queue::one* each : queue_.in_order(taken())) {
    session_info waits = info_of(each->session);
    waits.started = each->since;
    waits.environment = driver_variables(each->session);
    list.push_back(std::move(waits));
  }
  return list;
}

std::vector<warm_info> workers::list_warm() const {
  std::vector<warm_info> list;
  for (const auto& [id, w] : workers_) {
    if (w->session) continue;
    list.push_back({w->process.process, w->ready.has_value(), w->ready.value_or(ready_message{}), w->driver,
                    w->started});
  }
  return list;
}

}  // namespace outboard::backend
