#include "backend/daemon/handshake.hh"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "wire/features.hh"
#include "wire/make_frame.hh"
#include "wire/munge_proof.hh"

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

const auto token = bytes_of("a token of some length");
const wire::token_verifier verifier = wire::verifier_of(token);
const token_finder tokens = [](const wire::token_id& id) {
  return id == verifier.id ? std::optional(verifier) : std::nullopt;
};

std::vector<std::byte> payload_of(const std::vector<std::byte>& frame) {
  return {frame.begin() + wire::header_size, frame.end()};
}

/// A hello that proves the token to this server, and the seal that its welcome must have.
std::vector<std::byte> proven(const wire::hello& hello, const handshake& to, wire::seal& seal,
                              std::span<const std::byte> by = token) {
  std::vector<std::byte> payload = encode(hello);
  seal = wire::prove(payload, by, payload_of(to.greeting()));
  return make_frame(wire::frame_kind::hello, payload);
}

/// Feeds `piece` bytes at a time, until the handshake is over or the bytes are used up.
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
    handshake h(nullptr, challenge);
    EXPECT_EQ(feed(h, frame, piece), state::accepted);
    EXPECT_EQ(h.hello().program, "matmul");
    EXPECT_EQ(h.hello().environment, hello.environment);
  }
}

TEST(handshake, a_proof_is_good_for_one_encrypted_connection) {
  const auto ours = bytes_of("what both ends of ours can make"), other = bytes_of("and of another one");
  const auto answer_to = [&](std::span<const std::byte> seen_by_client,
                             std::span<const std::byte> of_server) {
    handshake h(&tokens, challenge);
    h.bind(of_server);
    std::vector<std::byte> payload = encode(wire::hello{});
    const wire::seal seal =
        wire::prove(payload, token, wire::bound_greeting(payload_of(h.greeting()), seen_by_client));
    const state now = feed(h, make_frame(wire::frame_kind::hello, payload));
    return now == state::accepted && h.seal() == seal;
  };
  EXPECT_TRUE(answer_to(ours, ours));
  EXPECT_FALSE(answer_to(other, ours));
  EXPECT_FALSE(answer_to({}, ours));
  EXPECT_FALSE(answer_to(ours, {}));
}

TEST(handshake, wants_nothing_of_what_follows_the_hello) {
  auto bytes = hello_frame();
  const std::size_t length = bytes.size();
  bytes.resize(length + 100);
  handshake h(nullptr, challenge);
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
  handshake h(nullptr, challenge);
  EXPECT_EQ(feed(h, frame), state::refused);
  EXPECT_EQ(h.refusal().reason, wire::refusal_reason::malformed);
  EXPECT_EQ(h.refusal().message, "frame of 65537 bytes, the limit is 65536");
}

TEST(handshake, asks_for_a_token_and_checks_the_proof) {
  handshake asks(&tokens, challenge);
  const auto greeting = wire::decode_greeting(payload_of(asks.greeting()));
  ASSERT_TRUE(greeting.ok());
  EXPECT_TRUE(greeting->token_required);
  EXPECT_EQ(greeting->challenge, challenge);
  EXPECT_EQ(feed(asks, hello_frame()), state::refused);
  EXPECT_EQ(asks.refusal().reason, wire::refusal_reason::token);

  handshake right(&tokens, challenge), other_challenge(&tokens, {}), other_token(&tokens, challenge);
  wire::seal seal{};
  const auto hello = proven({}, right, seal);
  EXPECT_EQ(feed(right, hello), state::accepted);
  EXPECT_EQ(right.seal(), seal);
  EXPECT_EQ(feed(other_challenge, hello), state::refused);
  EXPECT_EQ(feed(other_token, proven({}, other_token, seal, bytes_of("another token, as long"))),
            state::refused);
}

TEST(handshake, a_proof_is_good_for_the_whole_hello_and_greeting_only) {
  wire::hello asked;
  asked.wanted = wire::purpose::admin;
  asked.admin_question = "sessions";
  handshake first(&tokens, challenge);
  wire::seal seal{};
  const auto good = proven(asked, first, seal);
  for (std::size_t bit = wire::header_size * 8; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    handshake h(&tokens, challenge);
    EXPECT_NE(feed(h, bad), state::accepted) << "bit " << bit;
  }
  handshake other_features(&tokens, challenge, wire::feature_rings);
  EXPECT_EQ(feed(other_features, good), state::refused) << "somebody on the line took an offer away";
}

TEST(handshake, its_welcome_shows_that_the_server_knows_the_token) {
  handshake h(&tokens, challenge);
  wire::seal seal{};
  ASSERT_EQ(feed(h, proven({}, h, seal)), state::accepted);
  const auto welcome = payload_of(make_welcome(h.seal(), {std::byte{1}, std::byte{2}}, 7));
  EXPECT_TRUE(wire::has_seal(welcome, seal));
  for (std::size_t bit = 0; bit < welcome.size() * 8; ++bit) {
    auto bad = welcome;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(wire::has_seal(bad, seal)) << "bit " << bit;
  }
  EXPECT_FALSE(wire::has_seal(payload_of(make_welcome({}, {}, 7)), seal)) << "a server without the token";
  EXPECT_TRUE(wire::has_seal(payload_of(make_welcome({}, {}, 7)), {})) << "no token was asked for";
  EXPECT_FALSE(wire::has_seal({}, seal));
}

TEST(handshake, what_a_server_keeps_of_a_token_proves_nothing) {
  handshake h(&tokens, challenge);
  wire::seal seal{};
  EXPECT_EQ(feed(h, proven({}, h, seal, verifier.stored)), state::refused);
  handshake again(&tokens, challenge);
  EXPECT_EQ(feed(again, proven({}, again, seal, verifier.server)), state::refused);
}

TEST(handshake, names_what_it_does_not_speak) {
  wire::hello hello;
  hello.protocol = 9;
  hello.product = "outboard 7";
  handshake protocol(nullptr, challenge);
  EXPECT_EQ(feed(protocol, hello_frame(hello)), state::refused);
  EXPECT_EQ(protocol.refusal().reason, wire::refusal_reason::protocol);
  EXPECT_NE(protocol.refusal().message.find("protocol 9 of outboard 7"), std::string::npos);

  hello = {};
  hello.features = ~wire::feature_rings;
  handshake features(nullptr, challenge, wire::feature_rings);
  EXPECT_EQ(feed(features, hello_frame(hello)), state::refused);
}

TEST(handshake, takes_the_features_that_it_offered) {
  wire::hello hello;
  hello.features = wire::feature_rings;
  handshake offered(nullptr, challenge, wire::feature_rings);
  const std::vector<std::byte> greeting = offered.greeting();
  const auto sent = wire::decode_greeting(std::span(greeting).subspan(wire::header_size));
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->features, wire::feature_rings);
  EXPECT_EQ(feed(offered, hello_frame(hello)), state::accepted);
  EXPECT_EQ(offered.hello().features, wire::feature_rings);
  handshake not_offered(nullptr, challenge);
  EXPECT_EQ(feed(not_offered, hello_frame(hello)), state::refused);
}

TEST(handshake, survives_every_bit_flip_and_every_cut) {
  wire::hello hello;
  hello.environment = {{"CUDA_VISIBLE_DEVICES", "0"}};
  const handshake server(&tokens, challenge);
  wire::seal seal{};
  const auto good = proven(hello, server, seal);
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    handshake h(&tokens, challenge);
    const state now = feed(h, bad);
    // A larger size in the header waits for bytes that never come; unknown bits of a header are nobody's.
    if (now == state::refused) {
      EXPECT_FALSE(h.refusal().message.empty());
    }
  }
  for (std::size_t length = 0; length < good.size(); ++length) {
    handshake h(&tokens, challenge);
    EXPECT_EQ(feed(h, std::span(good).first(length)), state::wants_bytes);
  }
}

/// A server that takes MUNGE credentials, and a client that shows one to it. What a credential says stands in
/// it openly here.
struct by_munge : testing::Test {
  by_munge() { server.take_credentials(reader); }
  std::vector<std::byte> shown(const handshake& to, const wire::token_id& with_token = {}) {
    wire::hello hello;
    hello.features = wire::feature_munge;
    hello.token = with_token;
    auto question = wire::ask_munge(encode(hello), payload_of(to.greeting()));
    content = question.content;
    seal = question.seal;
    hello.credential = "MUNGE:of ann:";
    return hello_frame(hello);
  }
  std::vector<std::byte> content;
  wire::seal seal{};
  result<munge::claim> says = munge::claim{41001, 42, {}};
  const credential_reader reader = [this](const std::string& credential) -> result<munge::claim> {
    EXPECT_EQ(credential, "MUNGE:of ann:");
    if (says.ok()) says->content = content;
    return says;
  };
  handshake server{nullptr, challenge};
};

TEST_F(by_munge, a_client_shows_which_user_it_is) {
  ASSERT_EQ(feed(server, shown(server)), state::accepted);
  EXPECT_EQ(server.user()->user, 41001u);
  EXPECT_EQ(server.user()->group, 42u);
  EXPECT_EQ(server.seal(), seal);
}

TEST_F(by_munge, a_credential_for_another_greeting_is_refused) {
  handshake other(nullptr, wire::nonce{});
  other.take_credentials(reader);
  EXPECT_EQ(feed(server, shown(other)), state::refused);
  EXPECT_EQ(server.refusal().reason, wire::refusal_reason::token);
  EXPECT_FALSE(server.user().has_value());
}

TEST_F(by_munge, a_server_that_cannot_ask_munge_is_busy_and_a_bad_credential_is_wrong) {
  says = outboard::error{action::retry, "munged is silent"};
  EXPECT_EQ(feed(server, shown(server)), state::refused);
  EXPECT_EQ(server.refusal().reason, wire::refusal_reason::busy);
  handshake again(nullptr, challenge);
  again.take_credentials(reader);
  says = failure("it is bad");
  EXPECT_EQ(feed(again, shown(again)), state::refused);
  EXPECT_EQ(again.refusal().reason, wire::refusal_reason::token);
}

TEST_F(by_munge, who_shows_nothing_or_both_is_refused) {
  handshake both(&tokens, challenge);
  both.take_credentials(reader);
  EXPECT_EQ(feed(both, shown(both, verifier.id)), state::refused);
  EXPECT_EQ(both.refusal().reason, wire::refusal_reason::malformed);
  EXPECT_EQ(feed(server, hello_frame()), state::refused);
  EXPECT_EQ(server.refusal().reason, wire::refusal_reason::token);
}

TEST_F(by_munge, a_token_and_a_certificate_are_as_good) {
  handshake with_tokens(&tokens, challenge), certified(nullptr, challenge);
  with_tokens.take_credentials(reader);
  EXPECT_EQ(feed(with_tokens, proven({}, with_tokens, seal)), state::accepted);
  EXPECT_EQ(with_tokens.seal(), seal);
  certified.take_credentials(reader);
  certified.waive_token();
  EXPECT_EQ(feed(certified, hello_frame()), state::accepted);
}

TEST_F(by_munge, is_not_taken_where_it_was_not_offered) {
  handshake old(nullptr, challenge);
  EXPECT_EQ(feed(old, shown(server)), state::refused);
  EXPECT_EQ(old.refusal().reason, wire::refusal_reason::protocol);
}

}  // namespace
}  // namespace outboard::backend
