#include "frontend/copying/copy_pieces.hh"

#include <gtest/gtest.h>

#include <thread>

namespace outboard::frontend {
namespace {

TEST(EvenPieces, CoverTheCopyOnce) {
  const even_pieces all(10, 4);
  ASSERT_EQ(all.count(), 3u);
  EXPECT_EQ(all.offset(2), 8u);
  EXPECT_EQ(all.length(1), 4u);
  EXPECT_EQ(all.length(2), 2u);
}

TEST(SharedPieces, AreEachMovedByOneThread) {
  shared_pieces all(1000);
  std::vector<std::atomic<int>> moved(1000);
  std::atomic<std::uint64_t> begun{0};
  const auto may_begin = [&](std::uint64_t n) { return n < begun.load(); };
  const auto move = [&](std::uint64_t n) { ++moved[n]; };
  std::vector<std::thread> helpers;
  for (int i = 0; i < 3; ++i) helpers.emplace_back([&] { all.help(may_begin, move); });
  for (std::uint64_t done = 0; done < all.count();) {
    if (begun < all.count()) ++begun;
    all.help_once(may_begin, move);
    while (done < all.count() && all.is_ready(done)) ++done;
  }
  for (std::thread& each : helpers) each.join();
  for (const auto& each : moved) EXPECT_EQ(each, 1);
}

TEST(SharedPieces, LetHelpersGoWithoutWhatNeverBegins) {
  shared_pieces all(8);
  std::thread helper([&] { all.help([](std::uint64_t n) { return n < 2; }, [](std::uint64_t) {}); });
  while (!all.is_ready(1)) std::this_thread::yield();
  all.stop();
  helper.join();
  EXPECT_FALSE(all.is_ready(2));
}

}  // namespace
}  // namespace outboard::frontend
