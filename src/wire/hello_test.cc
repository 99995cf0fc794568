#include "wire/hello.hh"

#include <gtest/gtest.h>

#include <optional>

#include "wire/document_testing.hh"
#include "wire/frame.hh"

namespace outboard::wire {
namespace {

template <class Fill>
auto filled_with(Fill&& next) {
  std::array<std::byte, 32> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(next(i));
  return bytes;
}

// The messages of the document's examples.

greeting sample_greeting() {
  greeting m;
  m.protocol_lowest = 2;
  m.protocol_highest = 2;
  m.features = 0;
  m.token_required = true;
  m.challenge = filled_with([](std::size_t i) { return i; });
  m.product = "outboard 0.1.0";
  return m;
}

hello sample_hello() {
  hello m;
  m.protocol = 2;
  m.features = 0;
  m.answer = filled_with([](std::size_t i) { return 0xa0 + i; });
  for (std::size_t i = 0; i < m.token.size(); ++i) m.token[i] = static_cast<std::byte>(0x51 + i);
  m.challenge = filled_with([](std::size_t i) { return 0x20 + i; });
  m.product = "outboard 0.1.0";
  m.host = "pc";
  m.user = "ann";
  m.program = "app";
  m.process = 4242;
  m.window_base = 0x200000000000;
  m.window_slot_size = 1ull << 40;
  m.environment = {{"CUDA_VISIBLE_DEVICES", "0"}};
  return m;
}

welcome sample_welcome() {
  welcome m;
  m.protocol = 2;
  m.features = 0;
  m.session = 7;
  m.product = "outboard 0.1.0";
  m.content = {std::byte{'['}, std::byte{']'}};
  m.answer = filled_with([](std::size_t i) { return 0xc0 + i; });
  return m;
}

refusal sample_refusal() { return {refusal_reason::busy, "full"}; }

/// For expect_survives_damage: decoded and encoded again, or nothing.
template <class Decode>
auto rewrite(Decode decode) {
  return [decode](std::span<const std::byte> bytes) -> std::optional<std::vector<std::byte>> {
    const auto message = decode(bytes);
    if (message.ok()) return encode(*message);
    EXPECT_FALSE(message.error().message.empty());
    return std::nullopt;
  };
}

TEST(Hello, ExamplesOfTheDocument) {
  testing::expect_example("greeting", encode(sample_greeting()));
  testing::expect_example("hello", encode(sample_hello()));
  testing::expect_example("welcome", encode(sample_welcome()));
  testing::expect_example("refusal", encode(sample_refusal()));
}

TEST(Hello, EveryTruncationAndEveryFlippedBit) {
  testing::expect_survives_damage(encode(sample_greeting()), rewrite(decode_greeting));
  testing::expect_survives_damage(encode(sample_hello()), rewrite(decode_hello));
  testing::expect_survives_damage(encode(sample_welcome()), rewrite(decode_welcome));
  testing::expect_survives_damage(encode(sample_refusal()), rewrite(decode_refusal));
}

TEST(Hello, GreetingComesBack) {
  const greeting sent = sample_greeting();
  const auto got = decode_greeting(encode(sent));
  ASSERT_TRUE(got.ok());
  EXPECT_TRUE(got->token_required);
  EXPECT_EQ(got->challenge, sent.challenge);
  EXPECT_EQ(got->product, sent.product);
}

TEST(Hello, HelloComesBack) {
  hello sent = sample_hello();
  sent.wanted = purpose::admin;
  sent.admin_question = "sessions";
  const auto got = decode_hello(encode(sent));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->wanted, purpose::admin);
  EXPECT_EQ(got->answer, sent.answer);
  EXPECT_EQ(got->token, sent.token);
  EXPECT_EQ(got->challenge, sent.challenge);
  EXPECT_EQ(got->host, "pc");
  EXPECT_EQ(got->user, "ann");
  EXPECT_EQ(got->program, "app");
  EXPECT_EQ(got->process, 4242);
  EXPECT_EQ(got->window_base, sent.window_base);
  EXPECT_EQ(got->window_slot_size, sent.window_slot_size);
  EXPECT_EQ(got->admin_question, "sessions");
  EXPECT_EQ(got->environment, sent.environment);
}

/// A client of another program's port, and a server that meets one, say so.
TEST(Hello, StrangersAreNamed) {
  const std::string http = "HTTP/1.1 400 Bad Request\r\n\r\n";
  const auto bytes = std::as_bytes(std::span(http));
  EXPECT_EQ(decode_greeting(bytes).error().message, "this is not an Outboard server");
  EXPECT_EQ(decode_hello(bytes).error().message, "this is not an Outboard client");
}

TEST(Hello, LimitsOfWhatAStrangerMaySend) {
  hello m = sample_hello();
  m.environment.assign(64, {"NAME", "value"});
  EXPECT_TRUE(decode_hello(encode(m)).ok());
  m.environment.assign(65, {"NAME", "value"});
  EXPECT_NE(decode_hello(encode(m)).error().message.find("65"), std::string::npos);
  m = sample_hello();
  m.program.assign(4096, 'x');
  EXPECT_TRUE(decode_hello(encode(m)).ok());
  m.program += 'x';
  EXPECT_FALSE(decode_hello(encode(m)).ok());
}

TEST(Hello, PurposesAreTheListed) {
  hello m = sample_hello();
  for (int value = 0; value < 256; ++value) {
    m.wanted = static_cast<purpose>(value);
    EXPECT_EQ(decode_hello(encode(m)).ok(), value >= 1 && value <= 7) << value;
  }
}

}  // namespace
}  // namespace outboard::wire
