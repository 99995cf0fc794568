#include "backend/daemon/queue/waiting_line.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>

#include "base/log.hh"
#include "wire/frame.hh"

namespace outboard::backend {
namespace {

struct waiting_line_test : testing::Test {
  void join(const std::string& from) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    clients.emplace_back(ends[1]);
    accepted_session session;
    session.connection.reset(ends[0]);
    session.from = from;
    session.has = std::make_shared<const share>(share{.account = from});
    ASSERT_TRUE(line.join(std::move(session)).ok());
  }

  event_loop loop = std::move(*event_loop::make());
  std::vector<unique_fd> clients;
  std::vector<std::string> left;
  waiting_line line{loop, [this](const accepted_session& one, const wire::refusal* why) {
                      left.push_back(one.from + (why ? " (refused: " + why->message + ")" : ""));
                    }};
  std::optional<accepted_session> next() {
    return line.next([](const accepted_session&) { return true; }, [](const accepted_session&) { return 0; });
  }
};

TEST_F(waiting_line_test, calls_in_the_order_of_arrival) {
  EXPECT_FALSE(next());
  for (const char* from : {"a", "b", "c"}) join(from);
  EXPECT_EQ(line.length(), 3u);
  EXPECT_EQ(next()->from, "a");
  EXPECT_EQ(next()->from, "b");
  join("d");
  EXPECT_EQ(next()->from, "c");
  EXPECT_EQ(next()->from, "d");
  EXPECT_FALSE(next());
}

TEST_F(waiting_line_test, forgets_who_leaves) {
  for (const char* from : {"a", "b", "c"}) join(from);
  clients[1].reset();
  loop.run_once();
  EXPECT_EQ(line.length(), 2u);
  EXPECT_EQ(left, (std::vector<std::string>{"b"}));
  EXPECT_EQ(next()->from, "a");
  EXPECT_EQ(next()->from, "c");
}

TEST_F(waiting_line_test, calls_the_first_of_those_that_may_and_have_the_lowest_rank) {
  for (const char* from : {"a", "b", "c", "d", "b"}) join(from);
  const auto rank = [](const accepted_session& one) {
    return std::size_t{one.from == "b" || one.from == "c" ? 1u : 2u};
  };
  const auto may = [](const accepted_session& one) { return one.from != "c"; };
  std::string order;
  while (const auto one = line.next(may, rank)) order += one->from;
  EXPECT_EQ(order, "bbad");
  EXPECT_EQ(line.length(), 1u) << "who may not begin stays";
}

TEST_F(waiting_line_test, lets_some_go_and_others_stay) {
  for (const char* from : {"a", "b", "a"}) join(from);
  line.refuse_some([](const accepted_session& one) {
    return one.from == "a" ? std::optional(wire::refusal{wire::refusal_reason::token, "no"}) : std::nullopt;
  });
  EXPECT_EQ(left, (std::vector<std::string>(2, "a (refused: no)")));
  EXPECT_EQ(next()->from, "b");
  EXPECT_FALSE(next());
}

TEST_F(waiting_line_test, tells_why_it_lets_go) {
  join("a");
  line.refuse_all("closed");
  EXPECT_EQ(line.length(), 0u);
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

TEST_F(waiting_line_test, whoever_joins_and_leaves_again_and_again_has_a_number_of_lines) {
  static int lines;
  lines = 0;
  log::set_level(log::level::info);
  log::set_sink([](log::level, std::string_view) { ++lines; });
  for (int i = 0; i < 500; ++i) {
    join("a");
    clients.clear();
    loop.run_once();
    ASSERT_EQ(line.length(), 0u);
  }
  log::set_sink(nullptr);
  log::set_level(log::level::error);
  EXPECT_GE(lines, 20);
  EXPECT_LE(lines, 60) << "of 1,000";
}

}  // namespace
}  // namespace outboard::backend
