#include "backend/daemon/bounds/guest_sources.hh"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "base/fd.hh"

namespace outboard::backend {
namespace {

TEST(guest_sources, drop_the_oldest_of_a_source_that_has_its_part) {
  guest_sources sources(8);
  for (guest_sources::guest_id id = 1; id <= 6; ++id) {
    EXPECT_FALSE(sources.in_the_way_of("a")) << id;
    sources.enter("a", id);
  }
  const auto first = sources.in_the_way_of("a");
  ASSERT_TRUE(first);
  EXPECT_EQ(first->guest, 1u);
  EXPECT_EQ(first->why, "more than 6 connections without a hello from one source, and this was the oldest");
  EXPECT_FALSE(sources.in_the_way_of("b")) << "there is room for others";
  sources.leave("a", 1);
  EXPECT_FALSE(sources.in_the_way_of("a"));
}

TEST(guest_sources, drop_from_the_source_that_has_the_most_when_all_places_are_taken) {
  guest_sources sources(8);
  guest_sources::guest_id id = 0;
  sources.enter("honest", ++id);
  for (int i = 0; i < 3; ++i) sources.enter("b", ++id);
  for (int i = 0; i < 4; ++i) sources.enter("a", ++id);
  for (const char* newcomer : {"c", "b", "a", "honest"}) {
    const auto goes = sources.in_the_way_of(newcomer);
    ASSERT_TRUE(goes);
    EXPECT_EQ(goes->guest, 5u) << "the oldest of a";
    EXPECT_EQ(
        goes->why,
        "more than 8 connections without a hello, and this was the oldest of the source that has the most");
  }
  sources.leave("a", 5);
  sources.enter("c", ++id);
  EXPECT_EQ(sources.in_the_way_of("c")->guest, 2u) << "a and b have three each, and the oldest is b's";
}

TEST(guest_sources, a_flood_of_one_source_takes_no_place_of_others) {
  guest_sources sources(256);
  guest_sources::guest_id id = 0;
  for (int i = 0; i < 64; ++i) sources.enter("honest", ++id);
  for (int i = 0; i < 100000; ++i) {
    if (const auto goes = sources.in_the_way_of("flood")) {
      ASSERT_GT(goes->guest, 64u);
      sources.leave("flood", goes->guest);
    }
    sources.enter("flood", ++id);
  }
}

TEST(guest_sources, one_place_is_enough_for_one_guest) {
  guest_sources sources(1);
  EXPECT_FALSE(sources.in_the_way_of("a"));
  sources.enter("a", 1);
  EXPECT_EQ(sources.in_the_way_of("a")->guest, 1u);
  EXPECT_EQ(sources.in_the_way_of("b")->guest, 1u);
  sources.leave("b", 1);
  EXPECT_TRUE(sources.in_the_way_of("b")) << "only its own source can give up a place";
  sources.leave("a", 1);
  EXPECT_FALSE(sources.in_the_way_of("b"));
}

std::string source_over(int family, const sockaddr* address, socklen_t size) {
  const unique_fd listener(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      client(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage bound{};
  socklen_t room = sizeof bound;
  if (::bind(listener.get(), address, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&bound), &room) != 0 ||
      ::connect(client.get(), reinterpret_cast<sockaddr*>(&bound), room) != 0)
    return "unsupported";
  const unique_fd accepted(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  return source_of(accepted.get(), "otherwise");
}

TEST(guest_sources, a_source_is_an_address_a_network_or_a_user) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(source_over(AF_INET, reinterpret_cast<sockaddr*>(&v4), sizeof v4), "127.0.0.1");
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_addr = in6addr_loopback;
  const std::string network = source_over(AF_INET6, reinterpret_cast<sockaddr*>(&v6), sizeof v6);
  if (network != "unsupported") {
    EXPECT_EQ(network, "::/64");
  }
  ASSERT_EQ(::inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr), 1);
  const std::string mapped = source_over(AF_INET6, reinterpret_cast<sockaddr*>(&v6), sizeof v6);
  if (mapped != "unsupported") {
    EXPECT_EQ(mapped, "127.0.0.1");
  }
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const unique_fd one(ends[0]), other(ends[1]);
  EXPECT_EQ(source_of(one.get(), "otherwise"), "user " + std::to_string(::geteuid()));
  EXPECT_EQ(source_of(-1, "otherwise"), "otherwise");
}

}  // namespace
}  // namespace outboard::backend
