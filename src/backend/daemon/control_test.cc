#include "backend/daemon/control.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <filesystem>

namespace outboard::backend {
namespace {

struct control_test : testing::Test {
  control_test() {
    std::array<int, 2> ends{};
    CHECK(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) == 0);
    ours.reset(ends[0]);
    theirs.reset(ends[1]);
  }
  static std::size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }
  /// Sends one message with many descriptors, as only a worker that was taken over does.
  void send_with_descriptors(std::size_t count) {
    const char kind = static_cast<char>(control_kind::serving);
    iovec part{const_cast<char*>(&kind), 1};
    const std::vector<int> all(count, STDERR_FILENO);
    std::vector<std::uint64_t> room(CMSG_SPACE(count * sizeof(int)) / sizeof(std::uint64_t) + 1);
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = room.data();
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(c), all.data(), count * sizeof(int));
    ASSERT_EQ(::sendmsg(theirs.get(), &message, 0), 1);
  }

  unique_fd ours, theirs;
};

TEST_F(control_test, messages_of_all_sizes_arrive_as_they_were_sent) {
  for (const std::size_t size : {100000, 0, 1, 3, 70000}) {
    const std::vector<std::byte> payload(size, std::byte(size % 251));
    ASSERT_TRUE(send_control(theirs.get(), control_kind::facts, payload).ok());
    const auto got = receive_control(ours.get(), false);
    ASSERT_TRUE(got.ok() && *got);
    EXPECT_EQ((*got)->kind, control_kind::facts);
    EXPECT_EQ((*got)->payload, payload);
    EXPECT_FALSE((*got)->descriptor);
  }
  EXPECT_EQ(receive_control(ours.get(), false).error().next, action::retry);
}

TEST_F(control_test, no_descriptor_stays_open_that_nobody_asked_for) {
  const std::size_t before = open_descriptors();
  for (const std::size_t count : {1, 2, 3, 17, 200}) {
    send_with_descriptors(count);
    auto got = receive_control(ours.get(), false);
    ASSERT_TRUE(got.ok() && *got);
    EXPECT_TRUE((*got)->descriptor) << count;
    EXPECT_EQ(open_descriptors(), before + 1) << count;
    (*got)->descriptor.reset();
    EXPECT_EQ(open_descriptors(), before) << count;
  }
}

TEST_F(control_test, last_words_arrive_though_their_sender_has_read_nothing) {
  ASSERT_TRUE(send_control(ours.get(), control_kind::assign, {}).ok());
  ASSERT_TRUE(send_control(theirs.get(), control_kind::failed, encode_text("why")).ok());
  theirs.reset();
  const auto got = receive_control(ours.get(), false);
  ASSERT_TRUE(got.ok() && *got);
  EXPECT_EQ((*got)->kind, control_kind::failed);
  const auto end = receive_control(ours.get(), false);
  EXPECT_TRUE(end.ok() && !*end);
}

}  // namespace
}  // namespace outboard::backend
