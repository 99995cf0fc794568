// What `workers` does to sessions because their identities changed or an administrator says so, and the audit
// lines about them.
#include <signal.h>

#include <fmt/format.h>

#include "backend/daemon/worker_entry.hh"

namespace outboard::backend {

void workers::end_now(worker& w, const std::string& why) {
  w.problem = why;
  kill_if_there(w.id, SIGKILL);
}

void workers::end_credential(const std::string& name, const std::string& why) {
  queue_.refuse([&](accepted_session& session) {
    return session.who.name == name ? std::optional(wire::refusal{wire::refusal_reason::token, why})
                                    : std::nullopt;
  });
  for (const auto& [id, w] : workers_) {
    if (w->session && w->who.name == name) end_now(*w, why);
  }
}

bool workers::end_session(std::uint64_t session, const std::string& why) {
  for (const auto& [id, w] : workers_) {
    if (!w->session || w->session->id != session) continue;
    end_now(*w, why);
    return true;
  }
  return false;
}

void workers::change(const limit_settings& limits,
                     const std::function<shared_terms(const credential&)>& terms_of) {
  settings_.limits = limits;
  // Those that wait share nothing yet, so they take the name of their new identity, too.
  queue_.refuse([&](accepted_session& session) -> std::optional<wire::refusal> {
    session.terms = terms_of(session.who);
    session.identity = session.terms->name;
    if (session.terms->may.has(right::run)) return std::nullopt;
    return lacks_right(*session.terms, right::run);
  });
  for (const auto& [id, w] : workers_) {
    if (!w->session) continue;
    w->terms = terms_of(w->who);
    if (!w->terms->may.has(right::run)) end_now(*w, lacks_right(*w->terms, right::run).message);
  }
  for (const auto& [id, w] : workers_) {
    if (w->session) accounts_.change(w->identity, limits_of_memory(w->identity, nullptr));
  }
  call_next();
}

/// A session's line; `why` empty: there is no reason.
void workers::audit(const worker& w, std::string_view did, const std::string& why) const {
  if (!settings_.audit) return;
  const session_info& s = *w.session;
  settings_.audit->write({s.credential, s.identity, s.from}, did,
                         {{"session", fmt::to_string(s.id)},
                          {"user", s.user},
                          {"host", s.host},
                          {"program", s.program},
                          {"process", fmt::to_string(s.client_process)},
                          {"api", s.cuda ? "CUDA" : "OpenCL"},
                          {"why", why}});
}

}  // namespace outboard::backend
