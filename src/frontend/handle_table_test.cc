#include "frontend/handle_table.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

namespace outboard::frontend {
namespace {

TEST(handle_table, handles_are_no_small_numbers_and_die_at_release) {
  handle_table table(api::handle_kind::event);
  const std::uint64_t a = table.reserve(std::make_unique<object>());
  EXPECT_GT(a, 2u);
  EXPECT_EQ(a & 0xf, 0u);
  EXPECT_NE(table.find(a), nullptr);
  EXPECT_TRUE(table.release(a));
  EXPECT_EQ(table.find(a), nullptr);
  EXPECT_FALSE(table.release(a));
  EXPECT_NE(table.reserve(std::make_unique<object>()), a);
}

TEST(handle_table, a_dead_handle_is_none_of_what_has_its_place) {
  handle_table table(api::handle_kind::event);
  const std::uint64_t dead = table.reserve(std::make_unique<object>());
  ASSERT_TRUE(table.release(dead));
  const std::uint64_t alive = table.reserve(std::make_unique<object>());
  EXPECT_EQ(table.find(dead), nullptr);
  EXPECT_FALSE(table.release(dead));
  EXPECT_NE(table.find(alive), nullptr);
}

TEST(handle_table, nonsense_is_no_handle) {
  handle_table table(api::handle_kind::event);
  table.reserve(std::make_unique<object>());
  for (const std::uint64_t value : {0ull, 1ull, 2ull, ~0ull, 0xdeadbeefull, 0x7ffe00001234ull}) {
    EXPECT_EQ(table.find(value), nullptr);
  }
  handle_table other(api::handle_kind::stream);
  EXPECT_EQ(table.find(other.reserve(std::make_unique<object>())), nullptr);
}

/// The handle reaches the other thread without any order of its own: the table's must do.
TEST(handle_table, a_handle_is_found_with_its_object_or_not_at_all) {
  struct numbered final : object {
    explicit numbered(int n) : number(n) {}
    int number;
  };
  handle_table table(api::handle_kind::event);
  constexpr int objects = 2000;
  std::atomic<std::uint64_t> latest{0};
  std::thread finds([&] {
    for (int last = -1; last != objects - 1;) {
      const auto* found = static_cast<const numbered*>(table.find(latest.load(std::memory_order_relaxed)));
      if (!found) continue;
      EXPECT_GE(found->number, last);
      last = found->number;
    }
  });
  for (int n = 0; n < objects; ++n)
    latest.store(table.reserve(std::make_unique<numbered>(n)), std::memory_order_relaxed);
  finds.join();
}

TEST(handle_table, threads_reserve_and_release_at_once) {
  handle_table table(api::handle_kind::event);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 3000; ++i) {
        const std::uint64_t h = table.reserve(std::make_unique<object>());
        ASSERT_NE(table.find(h), nullptr);
        if (i % 3) {
          ASSERT_TRUE(table.release(h));
        }
      }
    });
  }
  for (auto& t : threads) t.join();
  std::size_t alive = 0;
  table.each([&](std::uint64_t, object&) { ++alive; });
  EXPECT_EQ(alive, 8000u);
}

}  // namespace
}  // namespace outboard::frontend
