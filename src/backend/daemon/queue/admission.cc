// Which sessions get a place among the workers, and which lose theirs: a part of workers.hh.
#include <signal.h>

#include "backend/daemon/session_fields.hh"
#include "backend/daemon/workers/worker_record.hh"
#include "base/log.hh"

namespace outboard::backend {

std::optional<wire::refusal> workers::begin_session(accepted_session&& session) {
  if (draining_) return wire::refusal{wire::refusal_reason::busy, "the server is shutting down"};
  const share_ptr has = session.has;
  if (const std::string full = seats_.refusal_of(*has); !full.empty() && !make_place_for(*has))
    return wire::refusal{wire::refusal_reason::busy, full};
  // Whoever waits may not run now.
  if (seats_.may_run(*has)) return give_worker(session);
  if (const status joined = waiting_.join(std::move(session)); !joined.ok())
    return wire::refusal{wire::refusal_reason::busy, joined.error().message};
  seats_.waits(*has);
  make_way();
  return std::nullopt;
}

void workers::call_next() {
  while (!draining_) {
    // The identity that has least comes first: nobody waits behind all that another has sent.
    auto session = waiting_.next(
        [this](const accepted_session& one) { return seats_.may_run(*one.has); },
        [this](const accepted_session& one) { return seats_.held_by(one.has->account).running; });
    if (!session) break;
    seats_.leaves(*session->has);
    if (const auto refusal = give_worker(*session)) {
      const log::with_fields fields(client_fields(*session));
      log::info("refused ", session->from, ": ", refusal->message);
      audit_refusal(*session, refusal->message);
      send_refusal(session->to_answer(), *refusal);
    }
  }
  make_way();
}

void workers::audit_begin(const worker& w) const {
  audit_fields fields = proven_fields(*w.session);
  fields.insert(fields.end(), {{"api", std::string(w.cuda ? "CUDA" : "OpenCL")},
                               {"worker", static_cast<std::int64_t>(w.process.process)}});
  settings_.audit.write("session-began", fields, claimed_fields(*w.session));
}

void workers::audit_end(const worker& w, double seconds, const std::string& why) const {
  audit_fields fields = proven_fields(*w.session);
  fields.insert(fields.end(), {{"seconds", seconds}, {"reason", why}});
  settings_.audit.write("session-ended", fields, claimed_fields(*w.session));
}

/// It costs who waits nothing.
void workers::audit_refusal(const accepted_session& session, const std::string& why) const {
  audit_fields fields = proven_fields(session);
  fields.emplace_back("reason", why);
  settings_.audit.write_some(session.identity, "refused", fields, claimed_fields(session));
}

void workers::end_identity(const std::string& identity, const std::string& why) {
  waiting_.refuse_some([&](accepted_session& one) {
    return one.identity == identity ? std::optional(wire::refusal{wire::refusal_reason::token, why})
                                    : std::nullopt;
  });
  for (const auto& [id, w] : workers_) {
    if (!w->session || w->who.person != identity) continue;
    w->ended_because = why;
    kill_successor(*w);
    kill_if_there(id, SIGKILL);
  }
}

void workers::look_again(const std::function<result<share_ptr>(const proven_identity&)>& look) {
  waiting_.refuse_some([&](accepted_session& one) -> std::optional<wire::refusal> {
    auto has = look(one.who());
    if (!has.ok()) return wire::refusal{wire::refusal_reason::token, has.error().message};
    seats_.leaves(*one.has);
    one.has = std::move(*has);
    seats_.waits(*one.has);
    return std::nullopt;
  });
  for (const auto& [id, w] : workers_) {
    if (!w->session) continue;
    auto has = look(w->who);
    if (!has.ok()) {
      w->ended_because = has.error().message;
      kill_successor(*w);
      kill_if_there(id, SIGKILL);
      continue;
    }
    seats_.ends(*w->has);
    w->has = std::move(*has);
    w->session->has = w->has;
    seats_.begins(*w->has);
    // One that counts already has the new limit; what is held stays.
    const bool counts = w->slot && w->account == w->has->account;
    if (const status limited = limit_group(*w, *w->has); !limited.ok())
      log::warn("session ", w->session->id, ": ", limited.error().message);
    if (counts) memory_.at(w->account).set_most(w->has->device_memory.value_or(UINT64_MAX));
  }
  call_next();
}

void workers::set_places(const limit_settings& limits, bool several) {
  settings_.limits = limits;
  seats_.set({limits.sessions, limits.running});
  seats_.set_several(several);
  several_ = several;
  call_next();
}

/// Before the session itself: the worker counts from its first byte on.
status workers::give_account(worker& w, const share& has) {
  if (!has.device_memory) return {};
  auto at = memory_.find(has.account);
  if (at == memory_.end()) {
    auto made = memory_account::make(*has.device_memory, settings_.boards);
    if (!made.ok()) return std::move(made).error();
    at = memory_.emplace(has.account, std::move(*made)).first;
  }
  at->second.set_most(*has.device_memory);  // read again since, maybe
  const auto slot = at->second.take_slot();
  if (!slot)
    return failure("this identity has " + std::to_string(most_account_slots) +
                   " sessions, which is the most");
  w.account = has.account;
  w.slot = slot;
  return send_control(w.process.control.get(), control_kind::account, encode_slot(*slot),
                      at->second.descriptor().get());
}

void workers::take_account_back(worker& w) {
  if (!w.slot) return;
  const auto at = memory_.find(w.account);
  at->second.give_back(*std::exchange(w.slot, std::nullopt));
  if (at->second.is_unused()) memory_.erase(at);
}

std::vector<std::uint64_t> workers::memory_of(const std::string& account) const {
  const auto at = memory_.find(account);
  if (at == memory_.end()) return {};
  std::vector<std::uint64_t> held = at->second.held();
  held.resize(settings_.boards.size());
  return held;
}

}  // namespace outboard::backend
