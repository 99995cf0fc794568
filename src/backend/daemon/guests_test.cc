#include "backend/daemon/guests.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <array>

namespace outboard::backend {
namespace {

using transport::io;

/// Gives its descriptor away, as the daemon wants it, and can do nothing else.
class detachable final : public transport::connection {
 public:
  explicit detachable(unique_fd fd) : fd_(std::move(fd)) {}
  const transport::capabilities& what() const override {
    static constexpr transport::capabilities all{.detachable = true};
    return all;
  }
  transport::io_result send(std::span<const iovec>, transport::deadline) override { return {}; }
  transport::io_result receive(std::span<std::byte>, transport::deadline) override { return {}; }
  io wait_readable(transport::deadline) override { return io::broken; }
  void interrupt() override {}
  void shutdown() override {}
  result<unique_fd> detach() override { return std::move(fd_); }
  std::string describe() const override { return "test:here:1"; }

 private:
  unique_fd fd_;
};

struct guests_test : testing::Test {
  unique_fd admit() {
    std::array<int, 2> ends{};
    CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    all.admit(std::make_unique<detachable>(unique_fd(ends[0])), "unix");
    return unique_fd(ends[1]);
  }

  event_loop loop = std::move(*event_loop::make());
  const token_book no_tokens{};
  const identity_book identities{};
  guests all{
      loop,
      {.tokens = &no_tokens, .identities = &identities, .allowed = {}, .limits = {.unauthenticated = 4}},
      [](accepted_session&&) { return std::optional<wire::refusal>(); },
      [](const asker&) { return result<shared_answer>(answers::make("answer")); }};
};

TEST_F(guests_test, one_that_cannot_be_watched_is_refused_and_the_daemon_lives) {
  const auto client = admit();
  EXPECT_EQ(all.present(), 1u);
  // epoll_ctl(2) takes no files, as it takes nothing when its user's watches are used up.
  all.admit(std::make_unique<detachable>(unique_fd(::memfd_create("file", MFD_CLOEXEC))), "unix");
  EXPECT_EQ(all.present(), 1u);
  EXPECT_EQ(all.refused(), 1u);
}

TEST_F(guests_test, no_more_than_the_limit_are_present) {
  std::vector<unique_fd> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(admit());
  EXPECT_EQ(all.present(), 3u) << "three quarters of four: all are this user";
  EXPECT_EQ(all.refused(), 17u);
  clients.clear();
  while (all.present() != 0) loop.run_once();
  EXPECT_EQ(all.refused(), 20u);
}

}  // namespace
}  // namespace outboard::backend
