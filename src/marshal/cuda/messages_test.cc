// What the lines say that messages are made of: each is written and read back whole.
#include "marshal/cuda/messages.hh"

#include <gtest/gtest.h>

#include <random>

#include "marshal/body_testing.hh"

namespace outboard::marshal {
namespace {

static_assert(std::is_same_v<message<api::opcode::cuModuleUnload>::request, handle_body>);
static_assert(std::is_same_v<message<api::opcode::cuModuleUnload>::reply, nothing>);
static_assert(std::is_same_v<message<service::memory_update>::request, raw_bytes>);
static_assert(carries<handle_body, nothing>(api::opcode::cuModuleUnload));
static_assert(!carries<unmap_body, nothing>(api::opcode::cuModuleUnload), "another request");
static_assert(!carries<handle_body, number_reply>(api::opcode::cuModuleUnload), "another reply");
static_assert(!carries<handle_body, nothing>(api::opcode::cuModuleLoad), "it goes under another's opcode");
static_assert(carries<share_reply, nothing>(service::share_forget));
static_assert(plain_form<handle_body> && plain_form<nothing> && !plain_form<with_bytes<feed_body>>);
static_assert(hand_form<by_hand<launch_body>> && !hand_form<perhaps<attribute_reply>>);
static_assert(std::is_same_v<body_of<with_bytes<feed_body>>, feed_body> &&
              std::is_same_v<body_of<raw_bytes>, nothing>);

/// Written and read back without a loss; and whatever bytes it is read from, it is written as it was read.
template <class Form>
void expect_whole(const char* name) {
  using body = body_of<Form>;
  const std::vector<std::byte> written = testing::bytes_of(body{});
  EXPECT_EQ(testing::rewritten<body>(written), written) << name;
  std::minstd_rand random(static_cast<unsigned>(written.size()) + 1);
  std::vector<std::byte> any(written.size());
  for (int i = 0; i < 100; ++i) {
    // Counts are small and flags 0 or 1 where most bytes are 0.
    for (std::byte& b : any) b = random() % 8 ? std::byte{0} : static_cast<std::byte>(random() % 3);
    EXPECT_EQ(testing::rewritten<body>(any).value_or(any), any) << name;
  }
}

TEST(messages, every_request_and_reply_is_read_back_as_it_was_written) {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...)
#define OUTBOARD_MESSAGE(symbol, request, reply) \
  expect_whole<request>(#symbol);                \
  expect_whole<reply>(#symbol);
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
#define SERVICE(name, number, request, reply) \
  expect_whole<request>(#name);               \
  expect_whole<reply>(#name);
#include "marshal/cuda/services.def"
#undef SERVICE
}

TEST(messages, a_function_has_a_message_if_the_server_has_a_handler_for_it) {
  std::size_t custom = 0, messages = 0;
  for (const api::function_info& f : api::functions()) custom += api::has_handler(f.about);
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...)
#define OUTBOARD_MESSAGE(symbol, request, reply) ++messages;
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
  EXPECT_EQ(messages, custom);
}

}  // namespace
}  // namespace outboard::marshal
