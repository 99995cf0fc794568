#include "backend/daemon/checkpoints.hh"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "api/cuda/headers.hh"
#include "backend/confinement/confinement.hh"
#include "backend/daemon/handshake.hh"

namespace outboard::backend {
namespace {

using wire::checkpoint_step;

/// How often the daemon looks whether a worker's requests are through.
constexpr std::chrono::milliseconds pause{2};
/// Askers that wait for a session which does not come to rest: each holds a descriptor.
constexpr std::size_t most_askers = 64;
/// Processes that tell the driver, shared by identities: each opens the driver.
constexpr std::size_t most_helpers = 16;

/// The whole answer fits any socket's buffer, and nothing follows.
void send_answer(int socket, const wire::seal& seal, const wire::checkpoint_answer& answer) {
  const std::vector<std::byte> frame = make_welcome(seal, encode(answer));
  (void)::send(socket, frame.data(), frame.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  ::shutdown(socket, SHUT_WR);
}

const char* word_of(checkpoint_step step) {
  switch (step) {
    case checkpoint_step::lock:
      return "locked";
    case checkpoint_step::checkpoint:
      return "checkpointed";
    case checkpoint_step::restore:
      return "restored";
    case checkpoint_step::unlock:
      return "unlocked";
    default:
      return "looked at";
  }
}

}  // namespace

struct checkpoints::waiting {
  unique_fd connection;
  std::string from, peer;
  proven_identity who;
  wire::checkpoint_question question;
  wire::seal seal{};
  std::uint64_t session = 0;
  event_loop::clock::time_point until;
  event_loop::id timer = 0;
};

checkpoints::checkpoints(event_loop& loop, checkpoint_settings settings, workers& w)
    : loop_(loop), settings_(std::move(settings)), workers_(w), log_(loop), places_(most_helpers) {}

checkpoints::~checkpoints() {
  for (const auto& [id, a] : askers_) loop_.forget(a->timer);
  for (const auto& [id, h] : helpers_) loop_.forget(h.watch);
}

std::optional<wire::refusal> checkpoints::begin(accepted_session&& asker) {
  auto q = wire::decode_checkpoint_question(asker.hello.admin_question);
  if (!q.ok()) return wire::refusal{wire::refusal_reason::malformed, q.error().message};
  const auto session = workers_.find_session(asker.identity, asker.hello.host, q->process);
  if (!session) {
    send_answer(asker.connection.get(), asker.seal, {});
    return std::nullopt;
  }
  if (settings_.device == "vendor") return ask_driver(asker, *q, *session);
  if (!workers_.hold_of(session->id)) {
    send_answer(asker.connection.get(), asker.seal, {true, CUDA_ERROR_NOT_SUPPORTED, 0});
    return std::nullopt;
  }
  if (askers_.size() >= most_askers)
    return wire::refusal{wire::refusal_reason::busy, "too many questions about checkpoints wait"};
  const asker_id id = next_++;
  auto a = std::make_unique<waiting>();
  a->connection = std::move(asker.connection);
  a->from = asker.from;
  a->peer = asker.peer;
  a->who = asker.who();
  a->until = q->milliseconds ? event_loop::clock::now() + std::chrono::milliseconds(q->milliseconds)
                             : event_loop::clock::time_point::max();
  a->question = std::move(*q);
  a->seal = asker.seal;
  a->session = session->id;
  askers_.emplace(id, std::move(a));
  step(id);
  return std::nullopt;
}

/// The connection goes to a process that may call the driver, as this one never does.
std::optional<wire::refusal> checkpoints::ask_driver(accepted_session& asker,
                                                     const wire::checkpoint_question& q,
                                                     const session_info& session) {
  if (const std::string why = why_no_helper(settings_.confine, helper_kind::checkpoint); !why.empty())
    return wire::refusal{wire::refusal_reason::device, why};
  if (!places_.take(asker.identity))
    return wire::refusal{wire::refusal_reason::busy, "too many questions about checkpoints are asked"};
  std::vector<std::string> arguments = settings_.command.arguments;
  arguments.insert(arguments.end(), {"--parent", std::to_string(::getpid()), "--device", settings_.device,
                                     "--checkpoint", std::to_string(session.worker)});
  if (settings_.confine != confine_choice::off) arguments.emplace_back("--confine-helper");
  auto started =
      start_child(settings_.command.program, arguments, worker_environment({}, settings_.own_environment));
  if (!started.ok()) {
    places_.give_back(asker.identity);
    return wire::refusal{wire::refusal_reason::busy, started.error().message};
  }
  // Until it ends.
  const asker_id id = next_++;
  helper& h = helpers_.emplace(id, helper{std::move(*started), asker.identity}).first->second;
  const int control = h.process.control.get();
  const auto watch =
      loop_.watch(control, EPOLLIN | EPOLLRDHUP, [this, id](std::uint32_t) { forget_helper(id); });
  if (watch.ok()) h.watch = *watch;
  const client_message m{asker.peer, {0, asker.scheme, encode(asker.hello), {}, asker.seal}};
  const status asked = watch.ok()
                           ? send_control(control, control_kind::client, encode(m), asker.connection.get())
                           : status(watch.error());
  if (!asked.ok()) {
    forget_helper(id);  // without its control socket it ends
    return wire::refusal{wire::refusal_reason::busy, asked.error().message};
  }
  log_.info(asker.peer, "worker ", session.worker, " is to be ", word_of(q.step), ", asked from ",
            asker.from);
  audit(asker.who(), asker.from, session.id, q.step);
  return std::nullopt;
}

/// Of the acts, not of looks.
void checkpoints::audit(const proven_identity& who, const std::string& from, std::uint64_t session,
                        checkpoint_step step) const {
  if (step == checkpoint_step::state) return;
  settings_.audit.write_some(who.person, "checkpoint",
                             {{"by", who.person},
                              {"from", from},
                              {"session", static_cast<std::int64_t>(session)},
                              {"step", std::string(word_of(step))}});
}

void checkpoints::forget_helper(asker_id id) {
  const auto at = helpers_.find(id);
  loop_.forget(at->second.watch);
  places_.give_back(at->second.identity);
  helpers_.erase(at);
}

void checkpoints::answer(asker_id id, std::int32_t code, std::int32_t state) {
  const auto at = askers_.find(id);
  send_answer(at->second->connection.get(), at->second->seal, {true, code, state});
  loop_.forget(at->second->timer);
  askers_.erase(at);
}

/// The states and codes of the driver; there is nothing to release.
void checkpoints::step(asker_id id) {
  waiting& a = *askers_.at(id);
  session_hold* hold = workers_.hold_of(a.session);
  if (!hold) return answer(id, CUDA_ERROR_NOT_INITIALIZED);
  const auto move = [&](int from, int to) {
    if (hold->state != from) return answer(id, CUDA_ERROR_ILLEGAL_STATE);
    hold->state = to;
    log_.info(a.peer, "session ", a.session, " is ", word_of(a.question.step), ", asked from ", a.from);
    audit(a.who, a.from, a.session, a.question.step);
    answer(id, CUDA_SUCCESS);
  };
  switch (a.question.step) {
    case checkpoint_step::state:
      return answer(id, CUDA_SUCCESS, hold->state);
    case checkpoint_step::lock:
      if (hold->state != CU_PROCESS_STATE_RUNNING || hold->is_held())
        return answer(id, CUDA_ERROR_ILLEGAL_STATE);
      hold->set(true);
      return look_again(id);
    case checkpoint_step::checkpoint:
      return move(CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_CHECKPOINTED);
    case checkpoint_step::restore:
      return move(CU_PROCESS_STATE_CHECKPOINTED, CU_PROCESS_STATE_LOCKED);
    case checkpoint_step::unlock:
      if (hold->state == CU_PROCESS_STATE_LOCKED) hold->set(false);
      return move(CU_PROCESS_STATE_LOCKED, CU_PROCESS_STATE_RUNNING);
  }
}

/// Locked once no request is under way.
void checkpoints::look_again(asker_id id) {
  const auto at = askers_.find(id);
  if (at == askers_.end()) return;
  waiting& a = *at->second;
  session_hold* hold = workers_.hold_of(a.session);
  if (!hold) return answer(id, CUDA_ERROR_NOT_INITIALIZED);
  if (hold->at_rest()) {
    hold->state = CU_PROCESS_STATE_LOCKED;
    log_.info(a.peer, "session ", a.session, " is locked, asked from ", a.from);
    audit(a.who, a.from, a.session, checkpoint_step::lock);
    return answer(id, CUDA_SUCCESS);
  }
  char nothing = 0;
  if (::recv(a.connection.get(), &nothing, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
    // Who asked is gone and would never unlock it.
    hold->set(false);
    askers_.erase(at);
    return;
  }
  if (event_loop::clock::now() >= a.until) {
    hold->set(false);
    return answer(id, CUDA_ERROR_NOT_READY);
  }
  a.timer = loop_.after(pause, [this, id] { look_again(id); });
}

}  // namespace outboard::backend
