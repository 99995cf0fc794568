// The protocol suite: descriptors that travel, identities, and many connections.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>

#include "transport/suite.hh"

namespace outboard::transport::suite {
namespace {

std::array<unique_fd, 2> make_pipe() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {unique_fd(ends[0]), unique_fd(ends[1])};
}

int open_descriptors() {
  int count = 0;
  for (int fd = 0; fd < 20000; ++fd) count += ::fcntl(fd, F_GETFD) >= 0;
  return count;
}

TEST_P(TransportSuite, passes_a_descriptor_between_bytes) {
  if (!client_->what().passes_descriptors) GTEST_SKIP() << "cannot pass descriptors";
  auto [out, in_end] = make_pipe();
  ASSERT_EQ(send_all(*client_, "before", soon()).status, io::done);
  ASSERT_TRUE(client_->send_descriptor(in_end.get()));
  ASSERT_EQ(send_all(*client_, "after", soon()).status, io::done);
  in_end.reset();
  std::array<std::byte, 100> into;  // a reader that takes all it can get stops short of the descriptor
  for (std::size_t have = 0; have < 6;) {
    io_result r = server_->receive(into, soon());
    ASSERT_EQ(r.status, io::done);
    have += r.bytes;
    ASSERT_LE(have, 6u);
  }
  EXPECT_EQ(server_->wait_readable(soon()), io::done);
  auto got = server_->receive_descriptor(soon());
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(receive_text(*server_, 5, soon()), "after");
  EXPECT_TRUE(::fcntl(got->get(), F_GETFD) & FD_CLOEXEC);
  EXPECT_EQ(::write(got->get(), "x", 1), 1);
  char c = 0;
  EXPECT_EQ(::read(out.get(), &c, 1), 1);
  EXPECT_EQ(c, 'x');
}

TEST_P(TransportSuite, waits_for_a_descriptor) {
  if (!client_->what().passes_descriptors) GTEST_SKIP() << "cannot pass descriptors";
  auto late = server_->receive_descriptor(in(10ms));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().next, action::retry);
  server_->interrupt();
  auto interrupted = server_->receive_descriptor(soon());
  ASSERT_FALSE(interrupted);
  EXPECT_EQ(interrupted.error().next, action::retry);
  std::thread sender([&] {
    std::this_thread::sleep_for(10ms);
    auto ends = make_pipe();
    for (int i = 0; i < 100; ++i) EXPECT_TRUE(client_->send_descriptor(ends[0].get()));
  });
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(server_->receive_descriptor(soon()));
  sender.join();
  ASSERT_EQ(send_all(*client_, "b", soon()).status, io::done);
  auto none = server_->receive_descriptor(soon());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().next, action::fail);
  client_.reset();
  auto closed = server_->receive_descriptor(soon());
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().next, action::reconnect);
}

TEST_P(TransportSuite, descriptors_nobody_asked_for_are_closed) {
  if (!client_->what().passes_descriptors) GTEST_SKIP() << "cannot pass descriptors";
  auto ends = make_pipe();
  int before = open_descriptors();
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(send_all(*client_, "a", soon()).status, io::done);
    ASSERT_TRUE(client_->send_descriptor(ends[0].get()));
  }
  std::vector<std::byte> all(20);
  EXPECT_EQ(receive_all(*server_, all, soon()).status, io::done);
  EXPECT_EQ(open_descriptors(), before);
}

TEST_P(TransportSuite, tells_who_the_peer_is) {
  if (!client_->what().peer_identity) {
    EXPECT_FALSE(server_->peer());
    GTEST_SKIP() << "does not know its peer";
  }
  for (connection* c : {client_.get(), server_.get()}) {
    auto who = c->peer();
    ASSERT_TRUE(who) << who.error().message;
    EXPECT_EQ(who->user, ::getuid());
    EXPECT_EQ(who->group, ::getgid());
    EXPECT_EQ(who->process, ::getpid());
  }
}

TEST_P(TransportSuite, what_it_cannot_do_it_says) {
  const capabilities& can = client_->what();
  EXPECT_GT(can.preferred_chunk, 0u);
  if (!can.passes_descriptors) {
    EXPECT_EQ(client_->send_descriptor(0).error().next, action::fall_back);
    EXPECT_EQ(client_->receive_descriptor(soon()).error().next, action::fall_back);
  }
  if (!can.detachable) {
    EXPECT_EQ(client_->detach().error().next, action::fall_back);
  }
  EXPECT_EQ(client_->describe().rfind(std::string(transport_->scheme()) + ":", 0), 0u) << client_->describe();
}

TEST_P(TransportSuite, a_detached_connection_goes_on) {
  if (!server_->what().detachable) GTEST_SKIP() << "cannot be detached";
  ASSERT_EQ(send_all(*client_, "one", soon()).status, io::done);
  EXPECT_EQ(receive_text(*server_, 2, soon()), "on");
  auto fd = server_->detach();
  ASSERT_TRUE(fd) << fd.error().message;
  EXPECT_TRUE(::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC);
  std::array<std::byte, 8> into;
  EXPECT_EQ(server_->receive(into, soon()).status, io::broken);
  EXPECT_FALSE(server_->detach());
  server_->shutdown();  // no longer concerns the stream
  server_.reset();
  auto other = GetParam().make();
  auto again = other->attach(std::move(*fd));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(receive_text(**again, 1, soon()), "e");
  EXPECT_EQ(send_all(**again, "two", soon()).status, io::done);
  EXPECT_EQ(receive_text(*client_, 3, soon()), "two");
}

TEST_P(TransportSuite, attaching_nonsense_is_an_error) {
  EXPECT_FALSE(transport_->attach(unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))));
  EXPECT_FALSE(transport_->adopt_listener(unique_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC))));
  EXPECT_FALSE(transport_->attach(unique_fd()));
}

/// A handshake costs as much as a hundred small messages, so no more than it takes.
TEST_P(TransportSuite, connections_whose_descriptors_are_above_1024) {
  rlimit limit;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 2500) GTEST_SKIP() << "only " << limit.rlim_cur << " descriptors allowed";
  int before = open_descriptors();
  {
    std::vector<pair> all;
    while (all.size() < 1000 && open_descriptors() < 1200) {
      for (int i = 0; i < 50; ++i) {
        all.push_back(make_pair());
        ASSERT_TRUE(all.back().first && all.back().second) << all.size();
      }
    }
    std::mt19937 random(1);
    std::ranges::shuffle(all, random);
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string text = std::to_string(i);
      ASSERT_EQ(send_all(*all[i].first, text, soon()).status, io::done);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string text = std::to_string(i);
      ASSERT_EQ(receive_text(*all[i].second, text.size(), soon()), text);
      all[i].second->interrupt();  // waits work on descriptors above 1024
      ASSERT_EQ(all[i].second->wait_readable(soon()), io::interrupted);
    }
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST_P(TransportSuite, every_descriptor_is_closed_on_exec) {
  for (int fd = 3; fd < 200; ++fd) {
    int flags = ::fcntl(fd, F_GETFD);
    // Descriptors that this process was born with are not ours.
    std::array<char, 256> target{};
    std::string link = "/proc/self/fd/" + std::to_string(fd);
    if (flags < 0 || ::readlink(link.c_str(), target.data(), target.size() - 1) < 0) continue;
    std::string_view kind(target.data());
    if (kind.rfind("socket:", 0) == 0 || kind == "anon_inode:[eventfd]") {
      EXPECT_TRUE(flags & FD_CLOEXEC) << fd << " " << kind;
    }
  }
}

}  // namespace
}  // namespace outboard::transport::suite
