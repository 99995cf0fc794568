#include "frontend/cuda/share_descriptor.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace outboard::frontend {
namespace {

marshal::share_token some_token() {
  marshal::share_token token;
  for (std::size_t i = 0; i < token.size(); ++i) token[i] = static_cast<std::uint8_t>(3 * i + 1);
  return token;
}

TEST(share_descriptor, is_read_by_every_holder_as_often_as_it_likes) {
  const auto made = make_share_descriptor(share_kind::allocation, some_token());
  ASSERT_TRUE(made);
  const unique_fd copy(::dup(made->given.get()));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read_share_descriptor(share_kind::allocation, made->given.get()), some_token());
    EXPECT_EQ(read_share_descriptor(share_kind::allocation, copy.get()), some_token());
  }
  EXPECT_EQ(::fcntl(made->given.get(), F_GETFD), FD_CLOEXEC) << "as a driver's";
}

TEST(share_descriptor, outlives_the_process_that_made_it) {
  auto made = make_share_descriptor(share_kind::pool, some_token());
  ASSERT_TRUE(made);
  made->watch.reset();
  EXPECT_EQ(read_share_descriptor(share_kind::pool, made->given.get()), some_token());
}

TEST(share_descriptor, of_another_kind_or_none_at_all_is_refused) {
  const auto made = make_share_descriptor(share_kind::pool, some_token());
  ASSERT_TRUE(made);
  EXPECT_FALSE(read_share_descriptor(share_kind::allocation, made->given.get()));
  EXPECT_FALSE(read_share_descriptor(share_kind::pool, -1));
  EXPECT_FALSE(read_share_descriptor(share_kind::pool, 1000));
  const unique_fd file(::open("/dev/null", O_RDWR));
  EXPECT_FALSE(read_share_descriptor(share_kind::pool, file.get()));
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  const unique_fd a(pair[0]), b(pair[1]);
  EXPECT_FALSE(read_share_descriptor(share_kind::pool, b.get())) << "empty: and it must not wait";
  ASSERT_EQ(::send(a.get(), "stranger's bytes", 16, 0), 16);
  EXPECT_FALSE(read_share_descriptor(share_kind::pool, b.get()));
  char still[17] = {};
  EXPECT_EQ(::recv(b.get(), still, 16, MSG_DONTWAIT), 16) << "they are still there";
}

TEST(share_descriptor, tells_when_the_last_copy_is_closed) {
  auto made = make_share_descriptor(share_kind::allocation, some_token());
  ASSERT_TRUE(made);
  EXPECT_TRUE(held_by_anyone(made->watch));
  unique_fd copy(::dup(made->given.get()));
  made->given.reset();
  EXPECT_TRUE(held_by_anyone(made->watch));
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  copy.reset();
  EXPECT_TRUE(held_by_anyone(made->watch)) << "a child has one";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(held_by_anyone(made->watch));
}

}  // namespace
}  // namespace outboard::frontend
