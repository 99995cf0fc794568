#include "backend/daemon/handshake.hh"

#include <fmt/format.h>
#include <utility>

#include "base/version.hh"
#include "wire/features.hh"
#include "wire/make_frame.hh"
#include "wire/munge_proof.hh"

namespace outboard::backend {

handshake::handshake(const token_finder* tokens, const wire::nonce& challenge, std::uint64_t features)
    : tokens_(tokens), challenge_(challenge), features_(features) {}

void handshake::take_credentials(const credential_reader& reader) {
  credentials_ = &reader;
  features_ |= wire::feature_munge;
}

std::vector<std::byte> handshake::greeting_payload() const {
  wire::greeting m;
  m.features = features_;
  m.token_required = tokens_ != nullptr || credentials_ != nullptr;
  m.challenge = challenge_;
  m.product = product;
  return encode(m);
}

std::vector<std::byte> handshake::greeting() const {
  return make_frame(wire::frame_kind::greeting, greeting_payload());
}

std::span<std::byte> handshake::wanted() {
  return std::span(in_payload_ ? std::span<std::byte>(payload_) : std::span<std::byte>(header_))
      .subspan(received_);
}

handshake::state handshake::advance(std::size_t received) {
  received_ += received;
  if (!wanted().empty()) return state::wants_bytes;
  return in_payload_ ? hello_complete() : header_complete();
}

handshake::state handshake::header_complete() {
  const auto header = wire::decode_header(header_, wire::max_hello_payload);
  if (!header.ok()) return refuse(wire::refusal_reason::malformed, header.error().message);
  if (header->kind != wire::frame_kind::hello) {
    return refuse(wire::refusal_reason::malformed,
                  "frame of kind " + std::to_string(static_cast<int>(header->kind)) + " before the hello");
  }
  payload_.resize(header->size);
  received_ = 0;
  in_payload_ = true;
  return payload_.empty() ? hello_complete() : state::wants_bytes;
}

handshake::state handshake::hello_complete() {
  const std::vector<std::byte> payload = std::exchange(payload_, {});
  auto hello = wire::decode_hello(payload);
  received_ = 0;
  if (!hello.ok()) return refuse(wire::refusal_reason::malformed, hello.error().message);
  if (hello->protocol < wire::protocol_min || hello->protocol > wire::protocol_max) {
    return refuse(
        wire::refusal_reason::protocol,
        fmt::format("protocol {} of {} is not spoken by {}, which speaks {} to {}; install the same version "
                    "on both sides",
                    hello->protocol, hello->product, product, wire::protocol_min, wire::protocol_max));
  }
  if ((hello->features & ~features_) != 0) {
    return refuse(wire::refusal_reason::protocol,
                  fmt::format("features {} were asked for, offered were {}", hello->features, features_));
  }
  if (auto problem = problem_of_proof(*hello, payload); problem)
    return refuse(problem->reason, std::move(problem->message));
  hello_ = std::move(*hello);
  return state::accepted;
}

std::optional<wire::refusal> handshake::problem_of_proof(const wire::hello& hello, payload_bytes payload) {
  if ((hello.features & wire::feature_munge) != 0) return problem_of_credential(hello, payload);
  const bool shows_token = hello.token != wire::token_id{};
  if ((tokens_ == nullptr && credentials_ == nullptr) || (waived_ && !shows_token)) return std::nullopt;
  if (tokens_ == nullptr || (credentials_ != nullptr && !shows_token)) {
    return wire::refusal{wire::refusal_reason::token, std::string("this server asks for a MUNGE credential") +
                                                          (tokens_ ? " or a token" : "") +
                                                          ": set munge = true (OUTBOARD_MUNGE=1)" +
                                                          (shows_token ? ", and name no token" : "")};
  }
  const auto verifier = (*tokens_)(hello.token);
  const auto seal = verifier
                        ? wire::check(payload, *verifier, wire::bound_greeting(greeting_payload(), binding_))
                        : std::nullopt;
  if (!seal) return wire::refusal{wire::refusal_reason::token, "the token is wrong"};
  seal_ = *seal;
  return std::nullopt;
}

/// It was offered, or the hello was refused by its features.
std::optional<wire::refusal> handshake::problem_of_credential(const wire::hello& hello,
                                                              payload_bytes payload) {
  if (hello.token != wire::token_id{})
    return wire::refusal{wire::refusal_reason::malformed,
                         "a hello has a token or a MUNGE credential, not both"};
  auto claim = (*credentials_)(hello.credential);
  if (!claim.ok()) {
    const bool ours = claim.error().next == action::retry;
    return wire::refusal{ours ? wire::refusal_reason::busy : wire::refusal_reason::token,
                         (ours ? "on the server, " : "") + claim.error().message};
  }
  const auto seal = wire::check_munge(claim->content, payload, hello.credential.size(),
                                      wire::bound_greeting(greeting_payload(), binding_));
  if (!seal)
    return wire::refusal{wire::refusal_reason::token,
                         "the MUNGE credential was made for another connection; if nobody is in between, "
                         "connect again"};
  seal_ = *seal;
  user_ = std::move(*claim);
  return std::nullopt;
}

handshake::state handshake::refuse(wire::refusal_reason reason, std::string message) {
  refusal_ = {reason, std::move(message)};
  return state::refused;
}

std::vector<std::byte> make_welcome(const wire::seal& seal, std::vector<std::byte> content,
                                    std::uint64_t session) {
  wire::welcome m;
  m.session = session;
  m.product = product;
  m.content = std::move(content);
  return make_frame(wire::frame_kind::welcome, encode(m, seal));
}

}  // namespace outboard::backend
