#include "frontend/copying/drains.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <thread>

#include "frontend/copying/drains_testing.hh"

namespace outboard::frontend {
namespace {

constexpr std::size_t block = drained_blocks::block;
const drains::stream_key stream_a{1, 10, 0}, stream_b{1, 11, 0}, elsewhere{2, 10, 0};

class drained : public testing::Test {
 protected:
  ~drained() override { drains_->drop_all(); }

  void ask(const drains::stream_key& of, std::size_t slot, std::span<std::byte> place) {
    blocks_.ask(*drains_, of, slot, place);
  }
  void finish(std::size_t slot, char with) { blocks_.finish(slot, with); }
  static bool holds(std::span<const std::byte> place, char what) {
    return std::ranges::all_of(place, [&](std::byte b) { return b == static_cast<std::byte>(what); });
  }
  std::uint32_t freed(std::size_t slot) { return blocks_.freed(slot); }

  drained_blocks blocks_;
  std::array<std::uint32_t, drained_blocks::slots>& done_ = blocks_.done;
  std::vector<std::byte> memory_ = std::vector<std::byte>(16 * block);
  std::shared_ptr<drains> drains_ = drains::make(2);
  std::span<std::byte> place(std::size_t n) { return std::span(memory_).subspan(n * block, block); }
};

TEST_F(drained, what_is_done_is_in_its_place_after_collect) {
  for (std::size_t i = 0; i < 16; ++i) ask(i % 2 ? stream_a : stream_b, i, place(i));
  EXPECT_TRUE(drains_->pending());
  for (std::size_t i = 0; i < 16; ++i) finish(i, static_cast<char>('a' + i));
  drains_->collect();
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_TRUE(holds(place(i), static_cast<char>('a' + i))) << i;
    EXPECT_EQ(freed(i), 1u);
  }
  EXPECT_FALSE(drains_->pending());
}

TEST_F(drained, is_carried_without_being_asked_for) {
  ask(stream_a, 0, place(0));
  finish(0, 'x');
  for (int i = 0; i < 5000 && drains_->pending(); ++i) ::usleep(1000);
  EXPECT_TRUE(holds(place(0), 'x'));
}

TEST_F(drained, collect_does_not_wait_for_the_device) {
  ask(stream_a, 0, place(0));
  ask(stream_b, 1, place(1));
  finish(1, 'y');
  drains_->collect();
  EXPECT_TRUE(holds(place(1), 'y'));
  EXPECT_TRUE(holds(place(0), 0));
  EXPECT_TRUE(drains_->pending());
  EXPECT_EQ(freed(0), 0u);
}

TEST_F(drained, of_two_copies_to_one_place_the_later_one_stays) {
  for (int round = 0; round < 50; ++round) {
    std::ranges::fill(done_, 0u);
    for (std::size_t i = 0; i < 16; ++i) ask(i % 3 ? stream_a : stream_b, i, place(0));
    for (std::size_t i = 0; i < 16; ++i) finish(i, static_cast<char>('a' + i));
    drains_->collect();
    EXPECT_TRUE(holds(place(0), 'a' + 15)) << round;
  }
}

TEST_F(drained, of_two_that_are_found_done_at_once_the_later_one_stays) {
  for (const std::size_t slot : {0, 1}) finish(slot, slot == 0 ? 'a' : 'b');
  for (int round = 0; round < 50; ++round) {
    std::ranges::fill(done_, 0u);
    ask(stream_a, 0, place(0));
    ask(stream_b, 1, place(0));
    constexpr std::uint64_t both = 1ull << 32 | 1;  // in one store
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(done_.data()), both, __ATOMIC_RELEASE);
    drains_->collect();
    EXPECT_TRUE(holds(place(0), 'b')) << round;
  }
}

TEST_F(drained, what_comes_into_memory_is_known_and_waited_for) {
  ask(stream_a, 0, place(3));
  EXPECT_TRUE(drains_->touch(std::span(memory_).subspan(4 * block - 1, 10)));
  EXPECT_FALSE(drains_->touch(place(4)));
  EXPECT_FALSE(drains_->touch(place(2)));
  drains_->await(place(4));
  std::thread device([&] {
    ::usleep(20'000);
    finish(0, 'z');
  });
  drains_->await(place(3));
  EXPECT_TRUE(holds(place(3), 'z'));
  device.join();
}

TEST_F(drained, a_context_that_is_gone_is_carried_nothing_of) {
  ask(stream_a, 0, place(0));
  ask(elsewhere, 1, place(1));
  EXPECT_TRUE(drains_->pending_in(1));
  drains_->drop(1);
  EXPECT_FALSE(drains_->pending_in(1));
  finish(0, 'x');
  finish(1, 'y');
  drains_->collect();
  EXPECT_TRUE(holds(place(0), 0));
  EXPECT_TRUE(holds(place(1), 'y'));
}

TEST_F(drained, what_the_device_was_not_asked_for_is_taken_back) {
  ask(stream_a, 0, place(0));
  ask(stream_a, 1, place(1));
  drains_->take_back(stream_a);
  finish(0, 'x');
  drains_->collect();
  EXPECT_FALSE(drains_->pending());
  EXPECT_TRUE(holds(place(0), 'x'));
}

/// Natively the device goes on writing to pages that nobody sees.
TEST_F(drained, memory_that_the_program_has_taken_away_is_no_fault) {
  void* gone = ::mmap(nullptr, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(gone, MAP_FAILED);
  ask(stream_a, 0, {static_cast<std::byte*>(gone), block});
  ::munmap(gone, block);
  finish(0, 'x');
  drains_->collect();
  EXPECT_FALSE(drains_->pending());
  EXPECT_EQ(freed(0), 1u) << "the device would wait for ever";
}

}  // namespace
}  // namespace outboard::frontend
