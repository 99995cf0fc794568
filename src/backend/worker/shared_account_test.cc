#include "backend/worker/shared_account.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

namespace outboard::backend {
namespace {

constexpr std::uint64_t MiB = 1u << 20;
constexpr std::array<std::uint64_t, 2> boards{11, 22};

struct shared_account_test : testing::Test {
  account_share member() {
    auto one = account_share::open(account.descriptor(), account.take_slot().value());
    EXPECT_TRUE(one);
    one->set_devices(boards);
    return std::move(*one);
  }
  std::uint64_t held(std::size_t place = 0) const { return account.held()[place]; }

  memory_account account = std::move(*memory_account::make(100 * MiB, boards));
};

bool take(account_share& of, std::int32_t device, std::uint64_t bytes) {
  const bool may = of.claim(device, bytes);
  if (may) of.change(device, bytes);
  of.settle();
  return may;
}

TEST_F(shared_account_test, all_together_hold_no_more_than_they_may) {
  account_share a = member(), b = member();
  EXPECT_TRUE(take(a, 0, 60 * MiB));
  EXPECT_FALSE(take(b, 0, 41 * MiB));
  EXPECT_TRUE(take(b, 0, 40 * MiB));
  EXPECT_FALSE(take(a, 0, 1));
  EXPECT_TRUE(take(a, 1, 100 * MiB)) << "each device for itself";
  EXPECT_EQ(a.left(0), 0u);
  b.change(0, 0 - 40 * MiB);
  EXPECT_EQ(a.left(0), 40 * MiB);
  EXPECT_TRUE(take(a, 0, 40 * MiB));
}

TEST_F(shared_account_test, what_is_claimed_and_not_taken_is_free_again) {
  account_share a = member(), b = member();
  EXPECT_TRUE(a.claim(0, 100 * MiB));
  EXPECT_FALSE(b.claim(0, MiB)) << "it may be taken any moment";
  a.settle();
  EXPECT_TRUE(b.claim(0, MiB));
  b.settle();
  EXPECT_EQ(held(), 0u);
}

TEST_F(shared_account_test, what_a_pool_keeps_is_spare) {
  account_share a = member();
  EXPECT_TRUE(take(a, 0, 90 * MiB));
  EXPECT_FALSE(a.claim(0, 30 * MiB, 10 * MiB));
  EXPECT_TRUE(a.claim(0, 30 * MiB, 20 * MiB));
  a.settle();
  EXPECT_FALSE(a.claim(0, 101 * MiB, 1000 * MiB)) << "more than there may be at all";
}

TEST_F(shared_account_test, devices_are_told_apart_by_their_boards_whatever_their_order) {
  account_share a = member(), b = member();
  b.set_devices(std::array<std::uint64_t, 3>{22, 11, 33});
  EXPECT_TRUE(take(a, 0, 100 * MiB));
  EXPECT_FALSE(take(b, 1, MiB));
  EXPECT_TRUE(take(b, 0, MiB));
  EXPECT_TRUE(take(b, 2, 100 * MiB)) << "one that is not lent";
  EXPECT_FALSE(take(a, 7, MiB)) << "all such are one";
}

TEST_F(shared_account_test, less_than_is_held_lets_nobody_take_more) {
  account_share a = member();
  EXPECT_TRUE(take(a, 0, 80 * MiB));
  account.set_most(50 * MiB);
  EXPECT_FALSE(take(a, 0, 1));
  EXPECT_EQ(a.left(0), std::nullopt);
  EXPECT_FALSE(a.claim(0, 0));
  a.change(0, 0 - 60 * MiB);
  EXPECT_TRUE(take(a, 0, 30 * MiB));
}

TEST_F(shared_account_test, a_slot_is_given_once_and_clean) {
  const auto slot = account.take_slot();
  {
    auto one = account_share::open(account.descriptor(), *slot);
    one->set_devices(boards);
    take(*one, 0, MiB);
    EXPECT_TRUE(one->claim(1, MiB));
  }
  EXPECT_FALSE(account.is_unused());
  account.give_back(*slot);
  EXPECT_TRUE(account.is_unused());
  account_share next = member();
  EXPECT_TRUE(take(next, 1, 100 * MiB)) << "what its last owner had claimed is gone";
  std::size_t more = 0;
  while (account.take_slot()) ++more;
  EXPECT_EQ(more, most_account_slots - 1);
}

TEST_F(shared_account_test, a_request_settles_what_it_has_claimed_itself) {
  account_share a = member(), b = member();
  EXPECT_TRUE(a.claim(0, 60 * MiB));
  std::thread([&] {
    EXPECT_TRUE(a.claim(0, 10 * MiB));
    EXPECT_TRUE(a.claim(1, 10 * MiB));
    a.settle();
  }).join();
  b.settle();
  EXPECT_FALSE(b.claim(0, 41 * MiB)) << "the first request is still under way";
  EXPECT_TRUE(b.claim(0, 40 * MiB));
  a.settle();
  EXPECT_FALSE(a.claim(0, 61 * MiB)) << "and so is this one";
  EXPECT_TRUE(a.claim(0, 60 * MiB));
  a.settle(), b.settle();
  EXPECT_TRUE(take(a, 0, 100 * MiB) && take(a, 1, 100 * MiB)) << "nothing is left of any claim";
}

TEST_F(shared_account_test, requests_of_several_threads_and_sessions_hold_no_more_than_they_may) {
  std::array<account_share, 2> sessions{member(), member()};
  std::atomic<std::uint64_t> held_by_all{0};
  std::atomic<int> too_much{0}, taken{0}, refused{0};
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(200);
  const auto lane = [&](account_share& session, unsigned seed) {
    std::minstd_rand random(seed);
    while (std::chrono::steady_clock::now() < until) {
      // A request that asks twice, and lets go of the first if it does not get the second.
      const std::uint64_t half = (random() % 30) * MiB;
      if (!session.claim(0, half) || !session.claim(0, half)) {
        session.settle();
        ++refused;
        continue;
      }
      std::this_thread::yield();
      session.change(0, 2 * half);
      if (held_by_all.fetch_add(2 * half) + 2 * half > 100 * MiB) ++too_much;
      session.settle();
      std::this_thread::yield();
      held_by_all.fetch_sub(2 * half);
      session.change(0, 0 - 2 * half);
      ++taken;
    }
  };
  std::vector<std::thread> lanes;
  for (unsigned i = 0; i < 4; ++i) lanes.emplace_back(lane, std::ref(sessions[i % 2]), i + 1);
  for (std::thread& each : lanes) each.join();
  EXPECT_EQ(too_much, 0);
  EXPECT_TRUE(taken > 0 && refused > 0) << taken << " and " << refused << ": they did not meet";
  EXPECT_EQ(held(), 0u);
  EXPECT_TRUE(take(sessions[0], 0, 100 * MiB)) << "nothing is left of any claim";
}

TEST_F(shared_account_test, opens_nothing_but_its_pages) {
  const unique_fd other(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(account_share::open(other, 0));
  EXPECT_FALSE(account_share::open(account.descriptor(), most_account_slots));
}

/// Takes and gives back at random until it is killed.
[[noreturn]] void tenant(account_share share, unsigned seed) {
  std::minstd_rand random(seed);
  std::uint64_t mine = 0;
  while (true) {
    const std::uint64_t bytes = (random() % 60) * MiB;
    if (take(share, 0, bytes)) mine += bytes;
    if (random() % 3 != 0) share.change(0, 0 - std::exchange(mine, 0));
  }
}

TEST_F(shared_account_test, workers_that_race_and_are_killed_never_hold_too_much_and_leave_nothing) {
  std::vector<std::pair<pid_t, std::uint32_t>> tenants;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t slot = account.take_slot().value();
    auto share = account_share::open(account.descriptor(), slot);
    share->set_devices(boards);
    const pid_t child = ::fork();
    if (child == 0) tenant(std::move(*share), i + 1);
    tenants.emplace_back(child, slot);
  }
  std::uint64_t most = 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  while (std::chrono::steady_clock::now() < until) {
    // The sum is of slots one after the other: two that swap between two looks may be counted twice, so each
    // is looked at while the others stand still.
    for (const auto& [process, slot] : tenants) ::kill(process, SIGSTOP);
    for (const auto& [process, slot] : tenants) ::waitpid(process, nullptr, WUNTRACED);
    most = std::max(most, held());
    ASSERT_LE(held(), 100 * MiB);
    for (const auto& [process, slot] : tenants) ::kill(process, SIGCONT);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GT(most, 0u);
  for (const auto& [process, slot] : tenants) {
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
    account.give_back(slot);
  }
  account_share last = member();
  EXPECT_TRUE(take(last, 0, 100 * MiB)) << "what the dead held or were about to take is free";
}

}  // namespace
}  // namespace outboard::backend
