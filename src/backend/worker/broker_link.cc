#include "backend/worker/broker_link.hh"

#include "backend/daemon/control_body.hh"

namespace outboard::backend {
namespace {

template <class Body>
std::optional<Body> decoded(const std::optional<control_message>& m, control_kind kind) {
  return m && m->kind == kind ? body_of<Body>(m->payload) : std::nullopt;
}

}  // namespace

std::optional<control_message> broker_link::ask(control_kind kind, std::span<const std::byte> payload,
                                                int descriptor) {
  const std::lock_guard lock(mutex_);
  if (!send_control(control_, kind, payload, descriptor).ok()) return std::nullopt;
  auto answer = receive_control(control_, true);
  if (!answer.ok()) return std::nullopt;
  return std::move(*answer);
}

std::shared_ptr<const marshal::share_token> broker_link::offer(share_class what, const share_about& about,
                                                               int descriptor) {
  const auto reply = decoded<offered_message>(
      ask(control_kind::offer, payload_of(offer_message{what, about}), descriptor), control_kind::offered);
  if (!reply || !reply->taken) return nullptr;
  return {new marshal::share_token(reply->token), [this, what](const marshal::share_token* token) {
            withdraw(what, *token);
            delete token;
          }};
}

std::optional<shared_thing> broker_link::seek(share_class what, const marshal::share_token& token) {
  auto answer = ask(control_kind::seek, payload_of(seek_message{what, token}), -1);
  auto reply = decoded<sought_message>(answer, control_kind::sought);
  if (!reply || !reply->found) return std::nullopt;
  return shared_thing{reply->own, std::move(reply->about), std::move(answer->descriptor)};
}

std::optional<shared_thing> broker_link::take_back(share_class what, const marshal::share_token& token) {
  auto found = seek(what, token);
  if (!found || !found->own || !found->descriptor) return std::nullopt;
  withdraw(what, token);
  return found;
}

bool broker_link::make_room(const room_message& needed) {
  if (ended_.load()) return false;
  const auto answer = ask(control_kind::make_room, payload_of(needed), -1);
  return answer && answer->kind == control_kind::room && answer->payload.size() == 1 &&
         answer->payload.front() != std::byte{0};
}

void broker_link::withdraw(share_class what, const marshal::share_token& token) {
  if (!ended_.load()) (void)ask(control_kind::withdraw, payload_of(seek_message{what, token}), -1);
}

}  // namespace outboard::backend
