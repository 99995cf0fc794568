#include "backend/handshake.hh"

#include "base/sha256.hh"
#include "base/version.hh"

namespace outboard::backend {

std::vector<std::byte> make_frame(wire::frame_kind kind, std::span<const std::byte> payload) {
  std::vector<std::byte> frame(wire::header_size);
  wire::encode_header({.size = static_cast<std::uint32_t>(payload.size()), .kind = kind},
                      std::span(frame).first<wire::header_size>());
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

handshake::handshake(std::span<const std::byte> token, const wire::nonce& challenge, std::uint64_t features)
    : token_(token), challenge_(challenge), features_(features) {}

std::vector<std::byte> handshake::greeting() const {
  wire::greeting m;
  m.features = features_;
  m.token_required = !token_.empty();
  m.challenge = challenge_;
  m.product = product;
  return make_frame(wire::frame_kind::greeting, encode(m));
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
  auto hello = wire::decode_hello(payload_);
  payload_ = {};
  received_ = 0;
  if (!hello.ok()) return refuse(wire::refusal_reason::malformed, hello.error().message);
  if (hello->protocol < wire::protocol_min || hello->protocol > wire::protocol_max) {
    return refuse(wire::refusal_reason::protocol,
                  "protocol " + std::to_string(hello->protocol) + " of " + hello->product +
                      " is not spoken by " + std::string(product) + ", which speaks " +
                      std::to_string(wire::protocol_min) + " to " + std::to_string(wire::protocol_max));
  }
  if ((hello->features & ~features_) != 0) {
    return refuse(wire::refusal_reason::protocol, "features " + std::to_string(hello->features) +
                                                      " were asked for, offered were " +
                                                      std::to_string(features_));
  }
  if (!token_.empty() && !equal_in_constant_time(hello->answer, hmac_sha256(token_, challenge_))) {
    return refuse(wire::refusal_reason::token, "the token is wrong");
  }
  hello_ = std::move(*hello);
  return state::accepted;
}

handshake::state handshake::refuse(wire::refusal_reason reason, std::string message) {
  refusal_ = {reason, std::move(message)};
  return state::refused;
}

std::vector<std::byte> make_welcome(std::vector<std::byte> content, std::uint64_t session) {
  wire::welcome m;
  m.session = session;
  m.product = product;
  m.content = std::move(content);
  return make_frame(wire::frame_kind::welcome, encode(m));
}

}  // namespace outboard::backend
