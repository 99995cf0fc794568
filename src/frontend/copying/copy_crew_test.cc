#include "frontend/copying/copy_crew.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace outboard::frontend {
namespace {

TEST(copy_crew, WorkIsSharedAndDoneWhenTheShiftEnds) {
  static copy_crew& crew = *new copy_crew(3);
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> next{0}, done{0};
    const std::function<void()> help = [&] {
      while (next.fetch_add(1) < 100) done.fetch_add(1);
    };
    {
      copy_crew::shift shift(crew, help);
      help();
    }
    EXPECT_EQ(done.load(), 100);
  }
}

TEST(copy_crew, AllOfThemHelp) {
  static copy_crew& crew = *new copy_crew(2);
  std::atomic<int> there{0};
  const std::function<void()> help = [&] {
    ++there;
    while (there.load() < 2) std::this_thread::yield();
  };
  {
    copy_crew::shift shift(crew, help);
    while (there.load() < 2) std::this_thread::yield();
  }
  EXPECT_EQ(there.load(), 2);
}

TEST(copy_crew, TheSecondShiftAtOnceGoesWithoutHelp) {
  static copy_crew& crew = *new copy_crew(1);
  std::atomic<bool> second_helped{false};
  const std::function<void()> nothing = [] {}, second = [&] { second_helped = true; };
  {
    copy_crew::shift one(crew, nothing);
    copy_crew::shift two(crew, second);
  }
  EXPECT_FALSE(second_helped.load());
}

TEST(copy_crew, NoMoreHelpThanAreWanted) {
  static copy_crew& crew = *new copy_crew(4);
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> there{0};
    std::atomic<bool> over{false};
    const std::function<void()> help = [&] {
      ++there;
      while (!over) std::this_thread::yield();
    };
    {
      const copy_crew::shift shift(crew, help, 2);
      while (there.load() < 2) std::this_thread::yield();
      std::this_thread::yield();
      over = true;
    }
    EXPECT_EQ(there.load(), 2);
  }
}

TEST(copy_crew, WithoutThreadsNothingHappens) {
  copy_crew crew(0);
  bool helped = false;
  const std::function<void()> help = [&] { helped = true; };
  { copy_crew::shift shift(crew, help); }
  EXPECT_FALSE(helped);
}

}  // namespace
}  // namespace outboard::frontend
