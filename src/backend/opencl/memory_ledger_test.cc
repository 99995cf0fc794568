#include "backend/opencl/memory_ledger.hh"

#include <gtest/gtest.h>

#include <array>

#include "backend/identity/memory_page.hh"

namespace outboard::backend::opencl {
namespace {

constexpr std::uint64_t most = 1000;

cl_device_id device(std::uintptr_t number) { return reinterpret_cast<cl_device_id>(number * 16); }

std::shared_ptr<memory_ledger> ledger_of_two(std::uint64_t limit = most, activity_page* page = nullptr) {
  auto all = std::make_shared<memory_ledger>(limit, page);
  all->add(device(1), 0x1b00 + 1);
  all->add(device(2), 0);
  all->add_part(device(3), device(2));
  all->open();
  return all;
}

std::shared_ptr<memory_ledger::hold> take(memory_ledger& all, std::initializer_list<cl_device_id> on,
                                          std::uint64_t bytes) {
  return all.take(all.places_of(std::span(on.begin(), on.size())), bytes);
}

TEST(memory_ledger, each_device_has_the_limit_for_itself) {
  const auto all = ledger_of_two();
  const auto first = take(*all, {device(1)}, 1000);
  ASSERT_TRUE(first);
  EXPECT_FALSE(take(*all, {device(1)}, 1));
  EXPECT_FALSE(take(*all, {device(1), device(2)}, 1)) << "it counts on every device of its context";
  EXPECT_EQ(all->bytes(device(2)), 0u);
  EXPECT_TRUE(take(*all, {device(2)}, 1000));
  EXPECT_FALSE(take(*all, {device(2)}, 1001));
  EXPECT_FALSE(take(*all, {device(2)}, ~std::uint64_t{0}));
}

TEST(memory_ledger, sessions_of_one_identity_share_its_limit) {
  auto page = memory_page::make().value();
  page.second.set_limits({.device = 1000, .host = 100});
  const auto session = [&](std::uint32_t slot) {
    page.second.clear(slot);
    auto all = std::make_shared<memory_ledger>(0, nullptr, memory_slot{&page.second, slot});
    all->add(device(1), 0x1b00 + 1);
    all->add(device(2), 0);
    all->open();
    return all;
  };
  const auto first = session(0), second = session(1);
  auto held = take(*first, {device(1), device(2)}, 700);
  ASSERT_TRUE(held);
  EXPECT_FALSE(take(*second, {device(1)}, 301));
  EXPECT_FALSE(take(*second, {device(1), device(2)}, 301));
  EXPECT_EQ(second->bytes(device(1)), 0u) << "counted on all devices of the context, or on none";
  EXPECT_TRUE(take(*second, {device(2)}, 300));
  held.reset();
  EXPECT_TRUE(take(*second, {device(1)}, 1000));
  auto machine = first->take_of_machine(70);
  ASSERT_TRUE(machine);
  EXPECT_FALSE(second->take_of_machine(31));
  machine.reset();
  EXPECT_TRUE(second->take_of_machine(100));
}

TEST(memory_ledger, parts_count_as_the_whole) {
  const auto all = ledger_of_two();
  const auto held = take(*all, {device(3), device(2)}, 600);
  ASSERT_TRUE(held);
  EXPECT_EQ(all->bytes(device(2)), 600u) << "once";
  EXPECT_FALSE(take(*all, {device(3)}, 401));
}

TEST(memory_ledger, memory_is_back_when_nobody_has_it_any_more) {
  const auto all = ledger_of_two();
  auto platforms = take(*all, {device(1)}, 700);
  auto clients = end_with_handle(platforms);
  clients.reset();
  EXPECT_EQ(all->dying(), 700u);
  EXPECT_FALSE(take(*all, {device(1)}, 400)) << "a command may still use it";
  platforms.reset();
  EXPECT_EQ(all->dying(), 0u);
  EXPECT_TRUE(take(*all, {device(1)}, 400));
  // Now the platform releases the object first.
  platforms = take(*all, {device(1)}, 700);
  clients = end_with_handle(std::move(platforms));
  clients.reset();
  EXPECT_EQ(all->dying(), 0u);
  EXPECT_EQ(all->bytes(device(1)), 0u);
}

TEST(memory_ledger, without_a_limit_it_counts_all_the_same) {
  const auto all = ledger_of_two(0);
  const auto held = take(*all, {device(1)}, 1ull << 40);
  ASSERT_TRUE(held);
  EXPECT_EQ(all->bytes(device(1)), 1ull << 40);
}

TEST(memory_ledger, the_activity_page_says_what_is_held_of_a_board) {
  auto own = own_activity::make();
  ASSERT_TRUE(own.ok());
  const auto all = ledger_of_two(most, own->page);
  const auto held = take(*all, {device(1)}, 300);
  const auto shown = shown_activity::open(own->descriptor);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->bytes_on(0x1b00 + 1), 300u);
}

}  // namespace
}  // namespace outboard::backend::opencl
