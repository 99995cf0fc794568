#include "backend/daemon/event_loop.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "base/log.hh"

namespace outboard::backend {
namespace {

TEST(event_loop, a_descriptor_that_cannot_be_watched_is_an_error_and_the_loop_goes_on) {
  event_loop loop = std::move(*event_loop::make());
  const unique_fd file(::memfd_create("file", MFD_CLOEXEC));
  const auto refused = loop.watch(file.get(), EPOLLIN, [](std::uint32_t) {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().next, action::retry);
  EXPECT_NE(refused.error().message.find("cannot watch another descriptor: "), std::string::npos);
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const unique_fd out(ends[0]), in(ends[1]);
  int called = 0;
  ASSERT_TRUE(loop.watch(out.get(), EPOLLIN, [&](std::uint32_t) { ++called; }).ok());
  ASSERT_EQ(::write(in.get(), "x", 1), 1);
  loop.run_once();
  EXPECT_EQ(called, 1);
}

TEST(event_loop, a_descriptor_that_is_gone_is_forgotten_when_it_changes_and_the_loop_goes_on) {
  event_loop loop = std::move(*event_loop::make());
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const unique_fd out(ends[0]), in(ends[1]);
  unique_fd gone(::fcntl(out.get(), F_DUPFD_CLOEXEC, 0));
  const auto watch = loop.watch(gone.get(), EPOLLIN, [](std::uint32_t) { FAIL(); });
  ASSERT_TRUE(watch.ok());
  int called = 0;
  ASSERT_TRUE(loop.watch(out.get(), EPOLLIN, [&](std::uint32_t) { ++called; }).ok());
  gone.reset();
  log::set_level(log::level::off);
  loop.change(*watch, EPOLLOUT);
  log::set_level(log::level::error);
  loop.change(*watch, EPOLLIN);
  ASSERT_EQ(::write(in.get(), "x", 1), 1);
  loop.run_once();
  EXPECT_EQ(called, 1);
}

}  // namespace
}  // namespace outboard::backend
