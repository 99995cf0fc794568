#include "base/retired_addresses.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/pages.hh"

namespace outboard {
namespace {

constexpr std::uint64_t granule = 64u << 10;

std::uint64_t mapped(std::uint64_t size) {
  void* got = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(got, MAP_FAILED);
  return reinterpret_cast<std::uint64_t>(got);
}

/// mmap refuses a place that is taken.
bool taken(std::uint64_t address) {
  void* wanted = reinterpret_cast<void*>(address);
  void* got =
      ::mmap(wanted, page_size(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED) ::munmap(got, page_size());
  return got != wanted;
}

TEST(retired_addresses_test, the_kernel_places_nothing_at_a_retired_address) {
  retired_addresses retired;
  const std::uint64_t at = mapped(granule);
  retired.retire(at, granule);
  EXPECT_TRUE(taken(at));
  for (int i = 0; i < 64; ++i) EXPECT_NE(mapped(granule), at);
}

TEST(retired_addresses_test, a_touch_faults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        retired_addresses retired;
        const std::uint64_t at = mapped(granule);
        retired.retire(at, granule);
        *reinterpret_cast<volatile char*>(at) = 1;
      },
      "");
}

TEST(retired_addresses_test, room_is_made_for_exactly_the_range_asked_for) {
  retired_addresses retired;
  const std::uint64_t at = mapped(4 * granule);
  retired.retire(at, granule);
  retired.retire(at + 2 * granule, 2 * granule);
  ::munmap(reinterpret_cast<void*>(at + granule), granule);
  retired.make_room(at + granule, 2 * granule);
  EXPECT_TRUE(taken(at));
  EXPECT_FALSE(taken(at + granule));
  EXPECT_FALSE(taken(at + 2 * granule));
  EXPECT_TRUE(taken(at + 3 * granule));
}

TEST(retired_addresses_test, what_is_retired_can_be_used_again) {
  retired_addresses retired;
  const std::uint64_t at = mapped(4 * granule);
  EXPECT_FALSE(retired.take(granule, 1));
  retired.retire(at, 4 * granule);
  EXPECT_FALSE(retired.take(5 * granule, 1));
  const auto aligned = retired.take(granule, 2 * granule);
  ASSERT_TRUE(aligned);
  EXPECT_EQ(*aligned % (2 * granule), 0u);
  EXPECT_TRUE(taken(*aligned)) << "it is the caller's, who maps over it";
  ::munmap(reinterpret_cast<void*>(*aligned), granule);
}

TEST(retired_addresses_test, its_end_gives_all_back) {
  const std::uint64_t at = mapped(granule);
  {
    retired_addresses retired;
    retired.retire(at, granule);
  }
  EXPECT_FALSE(taken(at));
}

}  // namespace
}  // namespace outboard
