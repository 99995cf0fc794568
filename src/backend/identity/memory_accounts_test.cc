#include "backend/identity/memory_accounts.hh"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace outboard::backend {
namespace {

/// A worker's view of its slot.
struct view {
  explicit view(const memory_lease& of)
      : page(memory_page::open(unique_fd(::dup(of.file()))).value()), slot(of.slot()) {}
  void hold(std::uint64_t bytes) { page.add(slot, page.column_of(7).value(), bytes); }
  memory_page page;
  std::uint32_t slot;
};

std::uint64_t file_of(const memory_lease& lease) {
  struct stat about {};
  EXPECT_EQ(::fstat(lease.file(), &about), 0);
  return about.st_ino;
}

TEST(memory_accounts, sessions_of_one_identity_share_a_page_and_others_never_see_it) {
  memory_accounts all;
  const auto first = all.join("ann", {.device = 100});
  const auto second = all.join("ann", {.device = 100});
  const auto other = all.join("bob", {});
  ASSERT_TRUE(first.ok() && second.ok() && other.ok());
  EXPECT_EQ(file_of(*first), file_of(*second));
  EXPECT_NE(first->slot(), second->slot());
  EXPECT_NE(file_of(*first), file_of(*other));
  view a(*first), b(*second);
  a.hold(60);
  EXPECT_FALSE(b.page.reserve(b.slot, b.page.column_of(7).value(), 41));
  b.hold(40);
  EXPECT_EQ(first->device_bytes(), 60u);
  EXPECT_EQ(all.held("ann").device, 100u);
  EXPECT_EQ(all.held("bob").device, 0u);
  EXPECT_EQ(view(*other).page.limits(), memory_limits{});
}

TEST(memory_accounts, a_session_that_ends_gives_its_share_back_and_the_last_one_takes_the_page_along) {
  memory_accounts all;
  auto first = std::make_unique<memory_lease>(all.join("ann", {.device = 100}).value());
  auto second = std::make_unique<memory_lease>(all.join("ann", {.device = 100}).value());
  view(*first).hold(90);
  view watcher(*second);
  const std::uint32_t slot = first->slot();
  first.reset();
  EXPECT_EQ(all.held("ann").device, 0u);
  EXPECT_EQ(watcher.page.left_of(watcher.page.column_of(7).value()), 100u);
  first = std::make_unique<memory_lease>(all.join("ann", {.device = 100}).value());
  EXPECT_EQ(first->slot(), slot) << "the lowest free one";
  EXPECT_EQ(first->device_bytes(), 0u);
  watcher.hold(~std::uint64_t{0});  // nonsense
  first.reset();
  second.reset();
  EXPECT_EQ(all.held("ann").device, 0u);
  first = std::make_unique<memory_lease>(all.join("ann", {.device = 100}).value());
  EXPECT_EQ(view(*first).page.left_of(view(*first).page.column_of(7).value()), 100u);
}

TEST(memory_accounts, limits_change_for_running_sessions) {
  memory_accounts all;
  const auto lease = all.join("ann", {.device = 100});
  ASSERT_TRUE(lease.ok());
  const view worker(*lease);
  all.change("ann", {.device = 50, .host = 20, .session_host = 10});
  all.change("bob", {.device = 1});
  EXPECT_EQ(worker.page.limits(), (memory_limits{50, 20, 10}));
  EXPECT_EQ(stricter({50, 0, 10}, {0, 20, 5}), (memory_limits{50, 20, 5}));
}

}  // namespace
}  // namespace outboard::backend
