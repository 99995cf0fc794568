#include "backend/waiting_line.hh"

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
    ASSERT_TRUE(line.join(std::move(session)).ok());
  }

  event_loop loop = std::move(*event_loop::make());
  std::vector<unique_fd> clients;
  waiting_line line{loop};
};

TEST_F(waiting_line_test, calls_in_the_order_of_arrival) {
  EXPECT_FALSE(line.next());
  for (const char* from : {"a", "b", "c"}) join(from);
  EXPECT_EQ(line.length(), 3u);
  EXPECT_EQ(line.next()->from, "a");
  EXPECT_EQ(line.next()->from, "b");
  join("d");
  EXPECT_EQ(line.next()->from, "c");
  EXPECT_EQ(line.next()->from, "d");
  EXPECT_FALSE(line.next());
}

TEST_F(waiting_line_test, forgets_who_leaves) {
  for (const char* from : {"a", "b", "c"}) join(from);
  clients[1].reset();
  loop.run_once();
  EXPECT_EQ(line.length(), 2u);
  EXPECT_EQ(line.next()->from, "a");
  EXPECT_EQ(line.next()->from, "c");
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
