#include "backend/opencl/memory_ledger.hh"

#include <gtest/gtest.h>

#include <array>

namespace outboard::backend::opencl {
namespace {

constexpr std::uint64_t most = 1000, memory = 1500;

cl_device_id device(std::uintptr_t number) { return reinterpret_cast<cl_device_id>(number * 16); }

std::shared_ptr<memory_ledger> ledger_of_two(std::uint64_t limit = most, activity_page* page = nullptr,
                                             account_share* account = nullptr) {
  auto all = std::make_shared<memory_ledger>(limit, page, account);
  all->add(device(1), 0x1b00 + 1, memory);
  all->add(device(2), 0, memory);
  all->add_part(device(3), device(2));
  all->open();
  return all;
}

std::shared_ptr<memory_ledger::hold> take(memory_ledger& all, std::initializer_list<cl_device_id> on,
                                          std::uint64_t bytes) {
  return all.take(all.places_of(std::span(on.begin(), on.size())), bytes);
}

TEST(MemoryLedger, EachDeviceHasTheLimitForItself) {
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

TEST(MemoryLedger, SessionsOfOneIdentityHaveItsLimitTogether) {
  auto account = std::move(*memory_account::make(1000, std::array<std::uint64_t, 1>{0x1b00 + 1}));
  const auto session = [](account_share& share) { return ledger_of_two(most, nullptr, &share); };
  auto mine = account_share::open(account.descriptor(), *account.take_slot());
  auto others = account_share::open(account.descriptor(), *account.take_slot());
  const auto a = session(*mine), b = session(*others);
  auto held = take(*a, {device(1)}, 700);
  ASSERT_TRUE(held);
  EXPECT_FALSE(take(*b, {device(1), device(2)}, 400));
  EXPECT_EQ(b->bytes(device(2)), 0u) << "nothing is left of what was refused";
  EXPECT_TRUE(take(*b, {device(2)}, 1000)) << "one that has no board is counted, too";
  const auto rest = take(*b, {device(1)}, 300);
  EXPECT_TRUE(rest);
  held.reset();
  EXPECT_TRUE(take(*b, {device(1)}, 700));
}

TEST(MemoryLedger, PartsCountAsTheWhole) {
  const auto all = ledger_of_two();
  const auto held = take(*all, {device(3), device(2)}, 600);
  ASSERT_TRUE(held);
  EXPECT_EQ(all->bytes(device(2)), 600u) << "once";
  EXPECT_FALSE(take(*all, {device(3)}, 401));
}

TEST(MemoryLedger, MemoryIsBackWhenNobodyHasItAnyMore) {
  const auto all = ledger_of_two();
  auto platforms = take(*all, {device(1)}, 700);
  auto clients = end_with_handle(platforms);
  clients.reset();
  EXPECT_EQ(all->dying(), 700u);
  EXPECT_FALSE(take(*all, {device(1)}, 400)) << "a command may still use it";
  platforms.reset();
  EXPECT_EQ(all->dying(), 0u);
  EXPECT_TRUE(take(*all, {device(1)}, 400));
  // The other way round: the platform was first.
  platforms = take(*all, {device(1)}, 700);
  clients = end_with_handle(std::move(platforms));
  clients.reset();
  EXPECT_EQ(all->dying(), 0u);
  EXPECT_EQ(all->bytes(device(1)), 0u);
}

TEST(MemoryLedger, WithoutALimitItCountsAllTheSame) {
  const auto all = ledger_of_two(0);
  const auto held = take(*all, {device(1)}, 1ull << 40);
  ASSERT_TRUE(held);
  EXPECT_EQ(all->bytes(device(1)), 1ull << 40);
}

TEST(MemoryLedger, RoomIsWantedWhereOthersMemoryHelps) {
  using boards = std::vector<std::uint64_t>;
  const auto room_for = [](memory_ledger& all, std::vector<cl_device_id> on, std::uint64_t bytes) {
    return all.room_for(all.places_of(on), bytes);
  };
  auto account = std::move(*memory_account::make(1000, std::array<std::uint64_t, 1>{0x1b00 + 1}));
  auto mine = account_share::open(account.descriptor(), *account.take_slot());
  auto others = account_share::open(account.descriptor(), *account.take_slot());
  const auto a = ledger_of_two(900, nullptr, &*mine), b = ledger_of_two(900, nullptr, &*others);
  auto room = room_for(*a, {device(1), device(2)}, 800);
  ASSERT_TRUE(room);
  EXPECT_FALSE(room->own);
  EXPECT_EQ(room->boards, (boards{0x1b00 + 1, 0}));
  const auto held = take(*b, {device(2)}, 700);
  room = room_for(*a, {device(1), device(3)}, 800);
  ASSERT_TRUE(room);
  EXPECT_TRUE(room->own) << "only its identity's other session can help, on this device";
  EXPECT_EQ(room->boards, boards{0});
  EXPECT_FALSE(room_for(*a, {device(1)}, 901)) << "more than the session may hold";
  EXPECT_FALSE(room_for(*ledger_of_two(0), {device(1)}, memory + 1)) << "more than there is";
}

TEST(MemoryLedger, TheActivityPageSaysWhatIsHeldOfABoard) {
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
