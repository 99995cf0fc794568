#include "backend/daemon/checkpoints.hh"

#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "api/cuda/headers.hh"
#include "backend/daemon/handshake.hh"

namespace outboard::backend {
namespace {

using wire::checkpoint_step;

/// How often the daemon checks whether a worker's requests have finished.
constexpr std::chrono::milliseconds pause{2};
/// The most clients that may wait for a session to come to rest; each holds a descriptor.
constexpr std::size_t most_askers = 64;
/// Each opens the driver, for as long as a checkpoint takes.
constexpr std::size_t most_helpers = 8;

/// The whole answer fits into any socket's buffer, and nothing follows it.
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
      return "inspected";
  }
}

}  // namespace

struct checkpoints::waiting {
  unique_fd connection;
  wire::seal seal = {};
  std::string from, peer;
  wire::checkpoint_question question;
  std::uint64_t session = 0;
  event_loop::clock::time_point until;
  event_loop::id timer = 0;
};

checkpoints::checkpoints(event_loop& loop, checkpoint_settings settings, workers& w)
    : loop_(loop), settings_(std::move(settings)), workers_(w), log_(loop) {}

checkpoints::~checkpoints() {
  for (const auto& [id, a] : askers_) loop_.forget(a->timer);
}

std::optional<wire::refusal> checkpoints::begin(accepted_session&& asker) {
  auto q = wire::decode_checkpoint_question(asker.hello.admin_question);
  if (!q.ok()) return wire::refusal{wire::refusal_reason::malformed, q.error().message};
  const auto session = workers_.find_session(asker.identity, asker.hello.host, q->process);
  if (!session) {
    send_answer(asker.connection.get(), asker.seal, {});
    return std::nullopt;
  }
  if (settings_.audit && q->step != checkpoint_step::state) {
    settings_.audit->write_at_most({asker.who.name, asker.identity, asker.from},
                                   fmt::format("had a session {}", word_of(q->step)), "session",
                                   fmt::to_string(session->id));
  }
  if (settings_.device == "vendor") return ask_driver(asker, *q, session->worker);
  if (!workers_.hold_of(session->id)) {
    send_answer(asker.connection.get(), asker.seal, {true, CUDA_ERROR_NOT_SUPPORTED, 0});
    return std::nullopt;
  }
  if (askers_.size() >= most_askers)
    return wire::refusal{wire::refusal_reason::busy, "too many questions about checkpoints wait"};
  const asker_id id = next_++;
  auto a = std::make_unique<waiting>();
  a->connection = std::move(asker.connection);
  a->seal = asker.seal;
  a->from = asker.from;
  a->peer = asker.peer;
  a->until = q->milliseconds ? event_loop::clock::now() + std::chrono::milliseconds(q->milliseconds)
                             : event_loop::clock::time_point::max();
  a->question = std::move(*q);
  a->session = session->id;
  askers_.emplace(id, std::move(a));
  step(id);
  return std::nullopt;
}

/// Passes the connection to a process that may call the driver; the daemon never does.
std::optional<wire::refusal> checkpoints::ask_driver(accepted_session& asker,
                                                     const wire::checkpoint_question& q, pid_t worker) {
  std::erase_if(helpers_, [](const unique_fd& control) {
    pollfd one{control.get(), 0, 0};
    return ::poll(&one, 1, 0) == 1;  // its other end is closed
  });
  if (helpers_.size() >= most_helpers)
    return wire::refusal{wire::refusal_reason::busy, "too many checkpoints are being made; try again later"};
  std::vector<std::string> arguments = settings_.command.arguments;
  arguments.insert(arguments.end(), {"--parent", fmt::to_string(::getpid()), "--device", settings_.device,
                                     "--checkpoint", fmt::to_string(worker)});
  auto helper =
      start_child(settings_.command.program, arguments, worker_environment({}, settings_.own_environment));
  if (!helper.ok()) return wire::refusal{wire::refusal_reason::busy, helper.error().message};
  const client_message m{asker.peer, {0, asker.scheme, encode(asker.hello), {}, asker.seal}};
  if (const status sent =
          send_control(helper->control.get(), control_kind::client, encode(m), asker.connection.get());
      !sent.ok())
    return wire::refusal{wire::refusal_reason::busy, sent.error().message};
  helpers_.push_back(std::move(helper->control));
  log_.info(asker.peer, "worker ", worker, " is to be ", word_of(q.step), ", as ", asker.from, " asked");
  return std::nullopt;
}

void checkpoints::answer(asker_id id, std::int32_t code, std::int32_t state) {
  const auto at = askers_.find(id);
  send_answer(at->second->connection.get(), at->second->seal, {true, code, state});
  loop_.forget(at->second->timer);
  askers_.erase(at);
}

/// Follows the driver's states and codes; there is no device memory to release.
void checkpoints::step(asker_id id) {
  waiting& a = *askers_.at(id);
  session_hold* hold = workers_.hold_of(a.session);
  if (!hold) return answer(id, CUDA_ERROR_NOT_INITIALIZED);
  const auto move = [&](int from, int to) {
    if (hold->state != from) return answer(id, CUDA_ERROR_ILLEGAL_STATE);
    hold->state = to;
    log_.info(a.peer, "session ", a.session, " is ", word_of(a.question.step), ", as ", a.from, " asked");
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

/// Reports the session as locked once no request is under way.
void checkpoints::look_again(asker_id id) {
  const auto at = askers_.find(id);
  if (at == askers_.end()) return;
  waiting& a = *at->second;
  session_hold* hold = workers_.hold_of(a.session);
  if (!hold) return answer(id, CUDA_ERROR_NOT_INITIALIZED);
  if (hold->at_rest()) {
    hold->state = CU_PROCESS_STATE_LOCKED;
    log_.info(a.peer, "session ", a.session, " is locked, as ", a.from, " asked");
    return answer(id, CUDA_SUCCESS);
  }
  char nothing = 0;
  if (::recv(a.connection.get(), &nothing, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
    // The client that asked is gone and would never unlock it.
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
