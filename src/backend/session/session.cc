#include "backend/session/session.hh"

#include "backend/session/session_core.hh"

namespace outboard::backend {

session_end serve_session(session_request request) {
  auto* core = new session_core(std::move(request));
  session_end end = core->run();
  if (!end.stuck) delete core;  // else its threads still use it
  return end;
}

}  // namespace outboard::backend
