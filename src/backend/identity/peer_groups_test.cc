#include "backend/identity/peer_groups.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "base/fd.hh"

namespace outboard::backend {
namespace {

TEST(peer_groups, are_those_of_the_process_at_the_other_end) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const unique_fd one(ends[0]), other(ends[1]);
  std::vector<gid_t> own(static_cast<std::size_t>(::getgroups(0, nullptr)));
  ASSERT_EQ(::getgroups(static_cast<int>(own.size()), own.data()), static_cast<int>(own.size()));
  own.push_back(::getegid());
  std::vector<std::uint32_t> found = peer_groups(one.get());
  for (const gid_t group : own) EXPECT_NE(std::ranges::find(found, group), found.end()) << group;
  EXPECT_EQ(found.size(), own.size());
}

TEST(peer_groups, of_another_socket_are_none) {
  const unique_fd socket(::socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_TRUE(socket);
  EXPECT_TRUE(peer_groups(socket.get()).empty());
}

}  // namespace
}  // namespace outboard::backend
