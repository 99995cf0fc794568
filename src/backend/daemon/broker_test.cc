#include "backend/daemon/broker.hh"

#include <fcntl.h>
#include <gtest/gtest.h>

#include "backend/daemon/control_body.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

template <class Body>
Body told(const std::optional<broker_answer>& answer) {
  const auto body = answer ? body_of<Body>(answer->payload) : std::nullopt;
  EXPECT_TRUE(body);
  return body.value_or(Body{});
}

control_message message(control_kind kind, std::vector<std::byte> payload, int fd = -1) {
  control_message m;
  m.kind = kind;
  m.payload = std::move(payload);
  m.descriptor.reset(fd);
  return m;
}

class broker_of_two : public testing::Test {
 protected:
  static constexpr std::uint64_t ada = 1, bob = 2;

  marshal::share_token offer(std::uint64_t owner, const std::string& who, std::uint64_t size = 4096) {
    const auto reply = told<offered_message>(
        broker_.answer(owner, who,
                       message(control_kind::offer,
                               payload_of(offer_message{share_class::memory, {2 * size, 512, size, {}, {}}}),
                               ::open("/dev/null", O_RDONLY | O_CLOEXEC))));
    EXPECT_TRUE(reply.taken);
    return reply.token;
  }
  std::optional<broker_answer> seek(std::uint64_t who, const std::string& identity,
                                    const marshal::share_token& token,
                                    share_class what = share_class::memory) {
    return broker_.answer(who, identity, message(control_kind::seek, payload_of(seek_message{what, token})));
  }
  bool finds(std::uint64_t who, const std::string& identity, const marshal::share_token& token,
             share_class what = share_class::memory) {
    const auto answer = seek(who, identity, token, what);
    const bool found = told<sought_message>(answer).found;
    EXPECT_EQ(answer->descriptor >= 0, found) << "never a descriptor with a refusal";
    return found;
  }

  broker broker_{{.per_session = 3, .descriptors = 4}};
};

TEST_F(broker_of_two, gives_what_was_offered_to_whoever_has_the_token) {
  const auto token = offer(ada, "user 7");
  const auto answer = seek(bob, "user 7", token);
  const auto got = told<sought_message>(answer);
  EXPECT_TRUE(got.found);
  EXPECT_FALSE(got.own);
  EXPECT_EQ(got.about.size, 4096u);
  EXPECT_EQ(got.about.offset, 512u);
  EXPECT_GE(answer->descriptor, 0);
  EXPECT_TRUE(told<sought_message>(seek(ada, "user 7", token)).own);
}

TEST_F(broker_of_two, knows_no_token_of_another_identity_class_or_with_a_bit_changed) {
  const auto token = offer(ada, "user 7");
  EXPECT_FALSE(finds(bob, "user 8", token));
  EXPECT_FALSE(finds(bob, "", token));
  EXPECT_FALSE(finds(bob, "user 7", token, share_class::pool));
  for (std::size_t bit = 0; bit < 8 * token.size(); ++bit) {
    auto forged = token;
    forged[bit / 8] ^= static_cast<std::uint8_t>(1u << bit % 8);
    EXPECT_FALSE(finds(bob, "user 7", forged)) << bit;
  }
  EXPECT_FALSE(finds(bob, "user 7", {}));
  EXPECT_TRUE(finds(bob, "user 7", token));
}

TEST_F(broker_of_two, forgets_with_the_owner_and_at_its_word_only) {
  const auto first = offer(ada, "user 7"), second = offer(ada, "user 7");
  const auto withdraw = [&](std::uint64_t who, const marshal::share_token& token) {
    EXPECT_TRUE(broker_.answer(
        who, "user 7",
        message(control_kind::withdraw, payload_of(seek_message{share_class::memory, token}))));
  };
  withdraw(bob, first);
  EXPECT_TRUE(finds(bob, "user 7", first)) << "not his to withdraw";
  withdraw(ada, first);
  EXPECT_FALSE(finds(bob, "user 7", first));
  EXPECT_TRUE(finds(bob, "user 7", second));
  broker_.forget(ada);
  EXPECT_FALSE(finds(bob, "user 7", second));
  EXPECT_EQ(broker_.size(), 0u);
}

TEST_F(broker_of_two, takes_no_more_than_its_limits) {
  const auto taken = [&](std::uint64_t who) {
    return told<offered_message>(
               broker_.answer(who, "u",
                              message(control_kind::offer, payload_of(offer_message{share_class::memory, {}}),
                                      ::open("/dev/null", O_RDONLY | O_CLOEXEC))))
        .taken;
  };
  EXPECT_TRUE(taken(ada) && taken(ada) && taken(ada));
  EXPECT_FALSE(taken(ada)) << "of one session";
  EXPECT_FALSE(taken(bob)) << "the same identity";
  broker_.forget(ada);
  EXPECT_TRUE(taken(bob));
}

TEST(broker_for_all, an_identity_that_offers_all_it_may_keeps_no_other_from_sharing_nor_from_connecting) {
  broker all{{.per_session = 100, .descriptors = 120}};
  const auto offer = [&](std::uint64_t owner, const std::string& who) {
    return told<offered_message>(
               all.answer(owner, who,
                          message(control_kind::offer,
                                  payload_of(offer_message{share_class::memory, {8, 0, 8, {}, {}}}),
                                  ::open("/dev/null", O_RDONLY | O_CLOEXEC))))
        .taken;
  };
  int eves = 0;
  for (std::uint64_t session = 1; session <= 5; ++session) {
    for (int i = 0; i < 110; ++i) eves += offer(session, "user 6");
  }
  EXPECT_GE(eves, 60);
  EXPECT_TRUE(offer(7, "user 7"));
  const unique_fd connection(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(all.keep_connection(7, "user 7", "tcp", connection).taken);
    EXPECT_TRUE(all.keep_connection(1, "user 6", "tcp", connection).taken) << "it may still work";
  }
  for (std::uint64_t session = 1; session <= 7; ++session) all.forget(session);
  EXPECT_EQ(all.size(), 0u);
  eves = 0;
  for (int i = 0; i < 110; ++i) eves += offer(1, "user 6");
  EXPECT_GE(eves, 60) << "all places are there again";
}

TEST_F(broker_of_two, a_session_that_meets_a_limit_again_and_again_has_one_line) {
  static int lines;
  lines = 0;
  log::set_level(log::level::warn);
  log::set_sink([](log::level, std::string_view) { ++lines; });
  const auto ask = [&](std::uint64_t owner) {
    for (int i = 0; i < 100; ++i)
      (void)broker_.answer(owner, "user 7",
                           message(control_kind::offer, payload_of(offer_message{share_class::event, {}})));
  };
  ask(ada), ask(bob);
  EXPECT_EQ(lines, 2) << "one for each session";
  broker_.forget(ada);
  ask(ada);
  EXPECT_EQ(lines, 3) << "a later session has its own";
  log::set_sink(nullptr);
  log::set_level(log::level::error);
}

TEST_F(broker_of_two, answers_no_nonsense) {
  EXPECT_FALSE(broker_.answer(ada, "u", message(control_kind::offer, {})));
  EXPECT_FALSE(broker_.answer(ada, "u", message(control_kind::seek, std::vector<std::byte>(7))));
  EXPECT_FALSE(broker_.answer(ada, "u", message(control_kind::ready, {})));
  EXPECT_FALSE(broker_.answer(
      ada, "u", message(control_kind::offer, payload_of(offer_message{share_class::memory, {}}))))
      << "memory without its descriptor";
  offer_message large{share_class::event, {}};
  large.about.native.resize(5000);
  EXPECT_FALSE(broker_.answer(ada, "u", message(control_kind::offer, payload_of(large))));
}

}  // namespace
}  // namespace outboard::backend
