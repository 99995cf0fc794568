#include "backend/identity/memory_page.hh"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fcntl.h>

#include <thread>
#include <vector>

#include "base/sealed_file.hh"

namespace outboard::backend {
namespace {

constexpr std::uint64_t board = 0x1b0001;

struct memory_page_test : testing::Test {
  memory_page_test() : made(memory_page::make().value()) {
    page.set_limits({.device = 1000, .host = 500, .session_host = 0});
    for (std::uint32_t slot = 0; slot < 4; ++slot) page.clear(slot);
    column = page.column_of(board).value();
  }
  /// What a worker does for an allocation.
  bool take(memory_page& by, std::uint32_t slot, std::uint64_t bytes) const {
    if (!by.reserve(slot, column, bytes)) return false;
    by.add(slot, column, bytes);
    by.release(slot, column, bytes);
    return true;
  }

  std::pair<unique_fd, memory_page> made;
  memory_page& page = made.second;
  std::size_t column = 0;
};

TEST_F(memory_page_test, slots_share_the_limit_and_a_cleared_one_gives_back) {
  EXPECT_TRUE(take(page, 0, 700));
  EXPECT_FALSE(take(page, 1, 301));
  EXPECT_TRUE(take(page, 1, 300));
  EXPECT_EQ(page.left_of(column), 0u);
  EXPECT_FALSE(take(page, 2, 1));
  EXPECT_EQ(page.held(0, column), 700u);
  page.clear(0);
  EXPECT_EQ(page.left_of(column), 700u);
  EXPECT_TRUE(take(page, 2, 700));
  EXPECT_EQ(page.all_of(column).reserved, 0u);
}

TEST_F(memory_page_test, what_is_reserved_counts_before_it_is_held) {
  ASSERT_TRUE(page.reserve(0, column, 600));
  EXPECT_EQ(page.left_of(column), 400u);
  EXPECT_FALSE(take(page, 1, 600)) << "the other one may still get it";
  page.release(0, column, 600);
  EXPECT_TRUE(take(page, 1, 600));
}

TEST_F(memory_page_test, who_waits_for_a_reservation_gets_what_it_leaves) {
  ASSERT_TRUE(page.reserve(0, column, 600));
  std::thread soon([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    page.release(0, column, 600);
  });
  EXPECT_TRUE(take(page, 1, 600));
  soon.join();
}

TEST_F(memory_page_test, each_device_and_the_host_have_limits_of_their_own) {
  const std::size_t other = page.column_of(board + 1).value();
  EXPECT_NE(other, column);
  EXPECT_EQ(page.column_of(board), column);
  EXPECT_EQ(page.find_column(board + 1), other);
  EXPECT_FALSE(page.find_column(77));
  EXPECT_TRUE(take(page, 0, 1000));
  EXPECT_TRUE(page.reserve(0, other, 1000));
  EXPECT_TRUE(page.reserve(0, host_column, 500));
  EXPECT_FALSE(page.reserve(1, host_column, 1));
  EXPECT_EQ(page.held_of_fullest_device(4), 1000u);
  EXPECT_EQ(page.held_on_devices(0), 1000u);
}

TEST_F(memory_page_test, a_lower_limit_refuses_more_and_takes_nothing_away) {
  ASSERT_TRUE(take(page, 0, 800));
  page.set_limits({.device = 500, .host = 0, .session_host = 0});
  EXPECT_FALSE(take(page, 1, 1));
  EXPECT_FALSE(page.fits(column, 0));
  EXPECT_EQ(page.left_of(column), 0u);
  EXPECT_EQ(page.held(0, column), 800u);
  page.set_limits({.device = 0, .host = 0, .session_host = 0});
  EXPECT_TRUE(take(page, 1, 1ull << 40)) << "no limit";
}

/// Takes and gives back what it can, and stops at once when the sum of all is more than the limit.
int compete(const unique_fd& file, std::uint32_t slot, std::size_t column) {
  auto mine = memory_page::open(file);
  if (!mine.ok()) return 2;
  int got = 0;
  for (int round = 0; round < 3000; ++round) {
    if (!mine->reserve(slot, column, 400)) continue;
    ++got;
    mine->add(slot, column, 400);
    mine->release(slot, column, 400);
    if (mine->all_of(column).held > 1000) return 3;
    mine->add(slot, column, 0 - std::uint64_t{400});
  }
  return got == 0 ? 4 : 0;
}

TEST_F(memory_page_test, processes_that_allocate_at_once_stay_within_the_limit) {
  std::vector<pid_t> all;
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(compete(made.first, slot, column));
    all.push_back(child);
  }
  for (const pid_t child : all) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_EQ(page.all_of(column).held, 0u);
  EXPECT_EQ(page.all_of(column).reserved, 0u);
}

TEST_F(memory_page_test, two_who_ask_at_once_for_what_one_can_have_do_not_both_fail) {
  std::atomic<int> ready{0}, got{0};
  for (int round = 0; round < 50; ++round) {
    ready = got = 0;
    const auto ask = [&](std::uint32_t slot) {
      ++ready;
      while (ready != 2) std::this_thread::yield();
      if (take(page, slot, 600)) ++got;
    };
    std::thread other([&] { ask(1); });
    ask(0);
    other.join();
    ASSERT_EQ(got, 1);
    page.clear(0);
    page.clear(1);
  }
}

TEST_F(memory_page_test, nonsense_is_only_a_number) {
  const std::uint64_t nonsense = ~std::uint64_t{0};
  page.add(1, column, nonsense);
  EXPECT_FALSE(take(page, 0, 1));
  EXPECT_EQ(page.left_of(column), 0u);
  page.clear(1);
  EXPECT_TRUE(take(page, 0, 1000)) << "with the liar its numbers go";
  // All of the file, by who can write all of it.
  const auto size = size_of_sealed_file(made.first.get()).value();
  const std::vector<std::uint8_t> junk(1u << 20, 0x7f);
  for (std::uint64_t at = 0; at < size; at += junk.size())
    ASSERT_GT(::pwrite(made.first.get(), junk.data(), std::min<std::uint64_t>(junk.size(), size - at),
                       static_cast<off_t>(at)),
              0);
  EXPECT_FALSE(page.column_of(board + 5));
  EXPECT_EQ(page.left_of(column), 0u);
  EXPECT_FALSE(take(page, 0, 1));
  EXPECT_EQ(page.held_on_devices(3), nonsense);
  page.clear(3);
  EXPECT_EQ(page.held_on_devices(3), 0u);
}

TEST(memory_page, no_other_file_is_taken_for_one) {
  EXPECT_FALSE(memory_page::open(unique_fd()).ok());
  EXPECT_FALSE(memory_page::open(make_sealed_file(4096, "small")).ok());
  EXPECT_FALSE(memory_page::open(unique_fd(::open("/dev/zero", O_RDWR | O_CLOEXEC))).ok());
}

}  // namespace
}  // namespace outboard::backend
