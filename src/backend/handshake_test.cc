#include "backend/handshake.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "base/sha256.hh"
#include "wire/features.hh"

namespace outboard::backend {
namespace {

using state = handshake::state;

const wire::nonce challenge = [] {
  wire::nonce n{};
  n[0] = std::byte{7};
  return n;
}();

std::span<const std::byte> bytes_of(std::string_view s) {
  return std::as_bytes(std::span(s.data(), s.size()));
}

std::vector<std::byte> hello_frame(const wire::hello& hello = {}) {
  return make_frame(wire::frame_kind::hello, encode(hello));
}

/// Feeds in pieces of `piece` bytes, until it is through or the bytes are used up.
state feed(handshake& h, std::span<const std::byte> bytes, std::size_t piece = ~std::size_t{0}) {
  state now = state::wants_bytes;
  while (now == state::wants_bytes && !bytes.empty()) {
    const auto room = h.wanted();
    EXPECT_FALSE(room.empty());
    EXPECT_LE(room.size(), wire::max_hello_payload);
    const std::size_t n = std::min({room.size(), bytes.size(), piece});
    std::copy_n(bytes.begin(), n, room.begin());
    bytes = bytes.subspan(n);
    now = h.advance(n);
  }
  return now;
}

TEST(handshake, takes_a_hello_in_pieces_of_any_size) {
  wire::hello hello;
  hello.program = "matmul";
  hello.environment = {{"CUDA_LAUNCH_BLOCKING", "1"}};
  const auto frame = hello_frame(hello);
  for (const std::size_t piece : {1u, 3u, 40u, 41u, 4096u}) {
    handshake h({}, challenge);
    EXPECT_EQ(feed(h, frame, piece), state::accepted);
    EXPECT_EQ(h.hello().program, "matmul");
    EXPECT_EQ(h.hello().environment, hello.environment);
  }
}

TEST(handshake, wants_nothing_of_what_follows_the_hello) {
  auto bytes = hello_frame();
  const std::size_t length = bytes.size();
  bytes.resize(length + 100);
  handshake h({}, challenge);
  std::size_t taken = 0;
  state now = state::wants_bytes;
  while (now == state::wants_bytes) {
    const auto room = h.wanted();
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(taken), room.size(), room.begin());
    taken += room.size();
    now = h.advance(room.size());
  }
  EXPECT_EQ(now, state::accepted);
  EXPECT_EQ(taken, length);
}

TEST(handshake, refuses_a_large_frame_before_it_takes_memory) {
  std::vector<std::byte> frame(wire::header_size);
  wire::encode_header({.size = wire::max_hello_payload + 1, .kind = wire::frame_kind::hello},
                      std::span(frame).first<wire::header_size>());
  handshake h({}, challenge);
  EXPECT_EQ(feed(h, frame), state::refused);
  EXPECT_EQ(h.refusal().reason, wire::refusal_reason::malformed);
  EXPECT_EQ(h.refusal().message, "frame of 65537 bytes, the limit is 65536");
}

TEST(handshake, asks_for_a_token_and_checks_the_proof) {
  const auto token = bytes_of("a token of some length");
  handshake asks(token, challenge);
  const std::vector<std::byte> frame = asks.greeting();
  const auto greeting = wire::decode_greeting(std::span(frame).subspan(wire::header_size));
  ASSERT_TRUE(greeting.ok());
  EXPECT_TRUE(greeting->token_required);
  EXPECT_EQ(greeting->challenge, challenge);

  wire::hello hello;
  EXPECT_EQ(feed(asks, hello_frame(hello)), state::refused);
  EXPECT_EQ(asks.refusal().reason, wire::refusal_reason::token);

  hello.answer = hmac_sha256(token, challenge);
  handshake right(token, challenge), other_challenge(token, {});
  EXPECT_EQ(feed(right, hello_frame(hello)), state::accepted);
  EXPECT_EQ(feed(other_challenge, hello_frame(hello)), state::refused);
}

TEST(handshake, names_what_it_does_not_speak) {
  wire::hello hello;
  hello.protocol = 9;
  hello.product = "outboard 7";
  handshake protocol({}, challenge);
  EXPECT_EQ(feed(protocol, hello_frame(hello)), state::refused);
  EXPECT_EQ(protocol.refusal().reason, wire::refusal_reason::protocol);
  EXPECT_NE(protocol.refusal().message.find("protocol 9 of outboard 7"), std::string::npos);

  hello = {};
  hello.features = ~wire::feature_rings;
  handshake features({}, challenge, wire::feature_rings);
  EXPECT_EQ(feed(features, hello_frame(hello)), state::refused);
}

TEST(handshake, takes_the_features_that_it_offered) {
  wire::hello hello;
  hello.features = wire::feature_rings;
  handshake offered({}, challenge, wire::feature_rings);
  const std::vector<std::byte> greeting = offered.greeting();
  const auto sent = wire::decode_greeting(std::span(greeting).subspan(wire::header_size));
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->features, wire::feature_rings);
  EXPECT_EQ(feed(offered, hello_frame(hello)), state::accepted);
  EXPECT_EQ(offered.hello().features, wire::feature_rings);
  handshake not_offered({}, challenge);
  EXPECT_EQ(feed(not_offered, hello_frame(hello)), state::refused);
}

TEST(handshake, survives_every_bit_flip_and_every_cut) {
  const auto token = bytes_of("a token of some length");
  wire::hello hello;
  hello.answer = hmac_sha256(token, challenge);
  hello.environment = {{"CUDA_VISIBLE_DEVICES", "0"}};
  const auto good = hello_frame(hello);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    handshake h(token, challenge);
    const state now = feed(h, bad);
    // The proof covers the challenge, not the hello: a flip elsewhere may stay a good hello.
    if (now == state::refused) {
      EXPECT_FALSE(h.refusal().message.empty());
    }
  }
  for (std::size_t length = 0; length < good.size(); ++length) {
    handshake h(token, challenge);
    EXPECT_EQ(feed(h, std::span(good).first(length)), state::wants_bytes);
  }
}

}  // namespace
}  // namespace outboard::backend
