#include "backend/daemon/queue/session_queue.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "wire/frame.hh"

namespace outboard::backend {
namespace {

struct session_queue_test : testing::Test {
  void join(const std::string& from, const std::string& identity = "anyone") {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    clients.emplace_back(ends[1]);
    accepted_session session;
    session.connection.reset(ends[0]);
    session.from = from;
    session.identity = identity;
    session.terms =
        std::make_shared<const identity_terms>(identity_terms{.name = identity, .may = {}, .devices = {}});
    ASSERT_TRUE(queue.join(std::move(session)).ok());
  }

  event_loop loop = std::move(*event_loop::make());
  std::vector<unique_fd> clients;
  bounded_log log{loop};
  session_queue queue{loop, log};
  taken_places taken;
};

TEST_F(session_queue_test, calls_in_the_order_of_arrival) {
  EXPECT_FALSE(queue.next(taken));
  for (const char* from : {"a", "b", "c"}) join(from);
  EXPECT_EQ(queue.length(), 3u);
  EXPECT_EQ(queue.next(taken)->from, "a");
  EXPECT_EQ(queue.next(taken)->from, "b");
  join("d");
  EXPECT_EQ(queue.next(taken)->from, "c");
  EXPECT_EQ(queue.next(taken)->from, "d");
  EXPECT_FALSE(queue.next(taken));
}

TEST_F(session_queue_test, calls_who_has_fewest_places) {
  for (const char* who : {"a", "a", "b"}) join(who, who);
  EXPECT_EQ(queue.waiting_of("a"), 2u);
  taken = {.most = 3, .all = 1, .of = {{"a", 1}}};
  std::vector<std::string> order;
  for (const session_queue::one* each : queue.in_order(taken)) order.push_back(each->session.from);
  EXPECT_EQ(order, (std::vector<std::string>{"b", "a", "a"}));
  EXPECT_EQ(queue.next(taken)->from, "b");
  taken = {.most = 3, .all = 3, .of = {{"a", 1}, {"b", 2}}};
  EXPECT_FALSE(queue.next(taken));
}

TEST_F(session_queue_test, refuses_those_for_whom_there_is_a_reason) {
  for (const char* who : {"a", "b", "a"}) join(who, who);
  queue.refuse([](accepted_session& session) {
    return session.identity == "a" ? std::optional(wire::refusal{wire::refusal_reason::token, "gone"})
                                   : std::nullopt;
  });
  EXPECT_EQ(queue.length(), 1u);
  EXPECT_EQ(queue.waiting_of("b"), 1u);
}

TEST_F(session_queue_test, forgets_a_client_that_leaves) {
  for (const char* from : {"a", "b", "c"}) join(from);
  clients[1].reset();
  loop.run_once();
  EXPECT_EQ(queue.length(), 2u);
  EXPECT_EQ(queue.next(taken)->from, "a");
  EXPECT_EQ(queue.next(taken)->from, "c");
}

TEST_F(session_queue_test, sends_the_reason_with_which_it_refuses) {
  join("a");
  queue.refuse_all("closed");
  EXPECT_EQ(queue.length(), 0u);
  std::array<std::byte, 256> said{};
  const ssize_t got = ::recv(clients[0].get(), said.data(), said.size(), 0);
  ASSERT_GT(got, ssize_t(wire::header_size));
  const auto header = wire::decode_header(std::span(said).first<wire::header_size>(), 256);
  ASSERT_TRUE(header.ok());
  EXPECT_EQ(header->kind, wire::frame_kind::refusal);
  const auto refusal = wire::decode_refusal(std::span(said).subspan(wire::header_size, header->size));
  ASSERT_TRUE(refusal.ok());
  EXPECT_EQ(refusal->reason, wire::refusal_reason::busy);
  EXPECT_EQ(refusal->message, "closed");
  EXPECT_EQ(::recv(clients[0].get(), said.data(), said.size(), 0), 0);
}

}  // namespace
}  // namespace outboard::backend
