#include "backend/cuda/memory/mirrors.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <thread>

#include "backend/cuda/memory/virtual_ranges.hh"
#include "base/sanitizers.hh"
#include "base/sealed_file.hh"
#include "device/mock/mock.hh"

namespace outboard::backend {
namespace {

constexpr std::uint64_t base = under_tsan ? 0x7e88'0000'0000 : 0x2088'0000'0000, page = 4096;

class MirrorsTest : public testing::Test {
 protected:
  MirrorsTest() : device_(std::move(*device::mock::open())), table_(device_->cuda()) {
    table_.cuInit(0);
    auto facts = marshal::take_snapshot(table_, false);
    EXPECT_TRUE(facts.ok());
    blocks_.open(*facts);
  }
  CUresult map(std::uint64_t address, std::uint64_t size,
               marshal::host_block kind = marshal::host_block::pinned) {
    return blocks_.map({address, size, 0, kind}, 1, 1, there_);
  }
  static unsigned char& here(std::uint64_t address) { return *reinterpret_cast<unsigned char*>(address); }

  /// What a client would send for one byte.
  static std::vector<std::byte> one_byte(std::uint64_t block, std::size_t size, std::size_t at,
                                         std::byte value) {
    std::vector<std::byte> memory(size), shadow(size), out;
    memory[at] = value;
    marshal::find_changes(block, memory, shadow, 0, size * 2, ~0ull >> 1, out);
    return out;
  }
  std::vector<std::byte> found() {
    marshal::fetch_body at;
    std::vector<std::byte> changes;
    EXPECT_EQ(blocks_.find(at, 1, changes), CUDA_SUCCESS);
    EXPECT_EQ(at.address, 0u);
    return changes;
  }

  std::unique_ptr<device::mock::mock_device> device_;
  const api::driver_table& table_;
  staging stage_{table_};
  device_tally held_;
  mirrors blocks_{table_, stage_, held_};
  std::uint64_t there_ = 0;
};

/// The driver may wait there for a host function of the client, which must see this memory before it runs.
TEST_F(MirrorsTest, WhoIsInTheDriverKeepsNobodyFromReadingAndWriting) {
  using namespace std::chrono_literals;
  ASSERT_EQ(map(base, page), CUDA_SUCCESS);
  ASSERT_EQ(map(base + 64 * page, page), CUDA_SUCCESS);
  for (const char* call : {"cuMemHostUnregister", "cuMemHostRegister_v2"}) {
    device_->block(call);
    std::thread inside([&] {
      std::uint64_t there = 0;
      if (call == std::string_view("cuMemHostUnregister")) {
        EXPECT_TRUE(blocks_.drop(base + 64 * page));
      } else {
        EXPECT_EQ(blocks_.map({base + 96 * page, page, 0, marshal::host_block::pinned}, 1, 2, there),
                  CUDA_SUCCESS);
      }
    });
    ASSERT_TRUE(device_->wait_blocked(call, 1, 5s));
    EXPECT_EQ(blocks_.store(one_byte(base, page, 7, std::byte{3})), CUDA_SUCCESS);
    here(base + 8) = 4;
    EXPECT_FALSE(found().empty());
    here(base + 8) = 0;
    EXPECT_FALSE(found().empty());
    device_->release(call);
    inside.join();
  }
  EXPECT_EQ(blocks_.pinned_bytes(), 2 * page);
}

TEST_F(MirrorsTest, PinnedMemoryLiesAtTheClientsAddressOrNowhere) {
  ASSERT_EQ(map(base, 10 * page), CUDA_SUCCESS);
  EXPECT_EQ(there_, base);
  EXPECT_EQ(blocks_.pinned_bytes(), 10 * page);
  EXPECT_EQ(map(base + 9 * page, page), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map(base - page, 2 * page), CUDA_ERROR_INVALID_VALUE);
  void* taken = ::mmap(reinterpret_cast<void*>(base + 32 * page), page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_EQ(taken, reinterpret_cast<void*>(base + 32 * page));
  here(base + 32 * page) = 7;
  EXPECT_EQ(map(base + 30 * page, 4 * page), CUDA_ERROR_MAP_FAILED);
  EXPECT_EQ(here(base + 32 * page), 7);
  ::munmap(taken, page);
  EXPECT_TRUE(blocks_.drop(base));
  EXPECT_FALSE(blocks_.drop(base));
  EXPECT_EQ(blocks_.pinned_bytes(), 0u);
  EXPECT_EQ(map(base, page), CUDA_SUCCESS);
}

TEST_F(MirrorsTest, MemoryOfTheHostThatIsMappedTakesOfTheRoomForPageLockedMemory) {
  virtual_ranges ranges(table_, held_);
  constexpr std::uint64_t all = 1ull << 50;
  EXPECT_TRUE(blocks_.admits_page_locked(page));
  ranges.created_on_host(7, all, make_sealed_file(page, "mirrors_test"), 0);
  EXPECT_FALSE(blocks_.admits_page_locked(page));
  EXPECT_EQ(map(base, page), CUDA_ERROR_OUT_OF_MEMORY);
  ranges.released(7);
  EXPECT_EQ(map(base, page), CUDA_SUCCESS);
}

TEST_F(MirrorsTest, ChangesGoBothWaysAndOnlyOnce) {
  ASSERT_EQ(map(base, 3 * page), CUDA_SUCCESS);
  EXPECT_EQ(blocks_.store(one_byte(base, 3 * page, 5000, std::byte{9})), CUDA_SUCCESS);
  EXPECT_EQ(here(base + 5000), 9);
  EXPECT_TRUE(found().empty());  // the client has it
  here(base + 5001) = 3;
  const std::vector<std::byte> changes = found();
  EXPECT_EQ(changes, one_byte(base, 3 * page, 5001, std::byte{3}));
  EXPECT_TRUE(found().empty());
}

/// A word that somebody may poll stands for all that was written before it: it comes with the last reply.
TEST_F(MirrorsTest, WordsComeBehindAllPartsOfWhatTheyStandFor) {
  constexpr std::uint64_t size = 24u << 20, word = size - page;
  ASSERT_EQ(map(base, size), CUDA_SUCCESS);
  for (std::uint64_t i = 0; i < word; ++i)
    here(base + i) = static_cast<unsigned char>(i * 2654435761u >> 24 | 1);
  here(base + word) = 1;
  marshal::fetch_body at;
  std::size_t parts = 0;
  bool word_came = false;
  do {
    EXPECT_FALSE(word_came);
    std::vector<std::byte> changes;
    ASSERT_EQ(blocks_.find(at, 1, changes, {}, true), CUDA_SUCCESS);
    marshal::for_each_run(changes,
                          [&](std::uint64_t address, std::uint32_t) { word_came |= address == base + word; });
    ASSERT_LT(++parts, 100u);
  } while (at.address != 0);
  EXPECT_GE(parts, 3u);
  EXPECT_TRUE(word_came);
}

TEST_F(MirrorsTest, LargeChangesComeInParts) {
  constexpr std::uint64_t size = 24u << 20;
  ASSERT_EQ(map(base, size), CUDA_SUCCESS);
  std::memset(reinterpret_cast<void*>(base), 5, size);
  std::size_t parts = 0, total = 0;
  marshal::fetch_body at;
  do {
    std::vector<std::byte> changes;
    ASSERT_EQ(blocks_.find(at, 1, changes), CUDA_SUCCESS);
    EXPECT_LT(changes.size(), 10u << 20);
    total += changes.size();
    ASSERT_LT(++parts, 100u);
  } while (at.address != 0);
  EXPECT_GE(parts, 3u);
  EXPECT_GE(total, size);
}

/// A large block of which copies name a little is not looked at as a whole.
TEST_F(MirrorsTest, NothingIsLookedAtOutsideOfTheRangesThatWereAskedFor) {
  ASSERT_EQ(map(base, 2 * page), CUDA_SUCCESS);
  ASSERT_EQ(map(base + 64 * page, 2 * page), CUDA_SUCCESS);
  for (const std::uint64_t at : {base + 10, base + page + 10, base + 64 * page + 70, base + 65 * page})
    here(at) = 7;
  marshal::fetch_body at;
  std::vector<std::byte> changes;
  const std::array<marshal::address_range, 3> only{{{base + page, base + page + 64},
                                                    {base + 64 * page + 64, base + 65 * page},
                                                    {base + 90 * page, base + 91 * page}}};
  EXPECT_EQ(blocks_.find(at, 1, changes, only), CUDA_SUCCESS);
  EXPECT_EQ(at.address, 0u);
  std::vector<std::byte> right = one_byte(base, 2 * page, page + 10, std::byte{7});
  const std::vector<std::byte> second = one_byte(base + 64 * page, 2 * page, 70, std::byte{7});
  right.insert(right.end(), second.begin(), second.end());
  EXPECT_EQ(changes, right);
  EXPECT_FALSE(found().empty());  // the others are still to come
}

TEST_F(MirrorsTest, LargeChangesOfRangesComeInParts) {
  constexpr std::uint64_t size = 24u << 20, some = 20u << 20;
  ASSERT_EQ(map(base, size), CUDA_SUCCESS);
  std::memset(reinterpret_cast<void*>(base), 5, size);
  const std::array<marshal::address_range, 2> only{
      {{base, base + 64}, {base + (1u << 20), base + (1u << 20) + some}}};
  std::size_t parts = 0, total = 0;
  marshal::fetch_body at;
  do {
    std::vector<std::byte> changes;
    ASSERT_EQ(blocks_.find(at, 1, changes, only), CUDA_SUCCESS);
    total += changes.size();
    ASSERT_LT(++parts, 100u);
  } while (at.address != 0);
  EXPECT_GE(parts, 3u);
  EXPECT_GE(total, some);
  EXPECT_LT(total, some + (1u << 20));
}

TEST_F(MirrorsTest, AWatchIsAnsweredOnlyIfSomethingHasChangedWhereItLooks) {
  ASSERT_EQ(map(base, 4 * page), CUDA_SUCCESS);
  const auto asked = [&](std::uint64_t place) {
    marshal::memory_question q;
    q.watch = true;
    q.places = {{base + place, base + place + 64}};
    q.only = {{base, base + 4 * page}};
    std::vector<std::byte> changes;
    EXPECT_EQ(blocks_.answer(q, 1, changes), CUDA_SUCCESS);
    EXPECT_EQ(q.at.address, 0u);
    return !changes.empty();
  };
  EXPECT_FALSE(asked(0));
  here(base + 5) = 1;
  EXPECT_FALSE(asked(page));
  EXPECT_FALSE(asked(64));
  EXPECT_TRUE(asked(0));
  EXPECT_FALSE(asked(0));
  // Places of a client that lies are nowhere.
  for (const marshal::address_range place : {marshal::address_range{0, ~0ull},
                                             {base + 4 * page, base + 5 * page},
                                             {base + 100, base},
                                             {base, ~0ull}}) {
    EXPECT_FALSE(blocks_.moved(std::span(&place, 1)));
  }
  here(base + page) = 1;
  const marshal::address_range all{base, ~0ull};
  EXPECT_TRUE(blocks_.moved(std::span(&all, 1)));
}

TEST_F(MirrorsTest, RefusesWhatIsNotItsOwn) {
  ASSERT_EQ(map(base, page), CUDA_SUCCESS);
  EXPECT_EQ(blocks_.store(one_byte(base + page, page, 1, std::byte{1})), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(blocks_.store(one_byte(reinterpret_cast<std::uint64_t>(&there_), 64, 1, std::byte{1})),
            CUDA_ERROR_INVALID_VALUE);
  std::vector<std::byte> changes;
  marshal::fetch_body odd{base, 3};
  EXPECT_EQ(blocks_.find(odd, 1, changes), CUDA_ERROR_INVALID_VALUE);
  marshal::fetch_body beyond{base, 1ull << 40};
  EXPECT_EQ(blocks_.find(beyond, 1, changes), CUDA_ERROR_INVALID_VALUE);
  // A variable of a module is one only if the driver says so.
  EXPECT_EQ(map(reinterpret_cast<std::uint64_t>(&there_), 8, marshal::host_block::managed),
            CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map(0, page), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map(base + 4 * page, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(map(~0ull - page, 2 * page), CUDA_ERROR_INVALID_VALUE);
  // Below the end of all addresses, which is near under TSan.
  EXPECT_EQ(map(base + 4 * page, under_tsan ? 1ull << 40 : 1ull << 46), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_F(MirrorsTest, SharedMemoryIsOneAndCannotBeResized) {
  unique_fd file;
  ASSERT_EQ(blocks_.share({base, 2u << 20}, 1, file), CUDA_SUCCESS);
  struct stat about {};
  ASSERT_EQ(::fstat(file.get(), &about), 0);
  EXPECT_EQ(about.st_size, 2 << 20);
  EXPECT_NE(::ftruncate(file.get(), 0), 0);
  EXPECT_NE(::ftruncate(file.get(), 4 << 20), 0);
  auto* client = static_cast<unsigned char*>(
      ::mmap(nullptr, 2u << 20, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
  ASSERT_NE(client, MAP_FAILED);
  here(base + 77) = 5;
  EXPECT_EQ(client[77], 5);
  EXPECT_TRUE(found().empty());  // nothing to carry
  EXPECT_EQ(blocks_.store(one_byte(base, page, 1, std::byte{1})), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(blocks_.all().empty());
  EXPECT_TRUE(blocks_.drop(base));
  client[78] = 6;  // the client's pages are still there
  ::munmap(client, 2u << 20);
  EXPECT_EQ(blocks_.share({base + 1, page}, 1, file), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(MirrorsTest, AContextTakesItsBlocksWithIt) {
  ASSERT_EQ(map(base, page), CUDA_SUCCESS);
  std::uint64_t other = 0;
  ASSERT_EQ(blocks_.map({base + 2 * page, page, 0, marshal::host_block::pinned}, 2, 2, other), CUDA_SUCCESS);
  blocks_.drop_context(1);
  EXPECT_FALSE(blocks_.drop(base));
  EXPECT_TRUE(blocks_.drop(base + 2 * page));
}

TEST_F(MirrorsTest, ManagedMemoryIsWholeGranulesAndFreedWithItsBlock) {
  std::uint64_t address = 0;
  ASSERT_EQ(blocks_.allocate_managed({5000, 0, CU_MEM_ATTACH_GLOBAL}, 0, 1, 1, address), CUDA_SUCCESS);
  EXPECT_EQ(blocks_.managed_bytes(), 2u << 20);
  EXPECT_EQ(held_.bytes(0), 2u << 20);
  EXPECT_EQ(blocks_.all().size(), 1u);
  EXPECT_TRUE(blocks_.drop(address));
  EXPECT_EQ(blocks_.managed_bytes(), 0u);
  EXPECT_EQ(held_.bytes(0), 0u);
  EXPECT_EQ(table_.cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);  // the driver has it back
  std::uint64_t wished = 0x1234;
  EXPECT_EQ(blocks_.allocate_managed({5000, wished, CU_MEM_ATTACH_GLOBAL}, 0, 1, 1, address),
            CUDA_ERROR_MAP_FAILED);
  EXPECT_EQ(blocks_.managed_bytes(), 0u);
}

TEST_F(MirrorsTest, ManagedMemoryIsReadByTheDriversCopies) {
  std::uint64_t address = 0;
  ASSERT_EQ(blocks_.allocate_managed({5u << 20, 0, CU_MEM_ATTACH_GLOBAL}, 0, 1, 1, address), CUDA_SUCCESS);
  EXPECT_TRUE(found().empty());
  ASSERT_EQ(table_.cuMemsetD8_v2(address + (4u << 20) + 9, 7, 1), CUDA_SUCCESS);
  EXPECT_EQ(found(), one_byte(address, 6u << 20, (4u << 20) + 9, std::byte{7}));
  EXPECT_TRUE(found().empty());
  EXPECT_EQ(blocks_.store(one_byte(address, 6u << 20, 77, std::byte{3})), CUDA_SUCCESS);
  EXPECT_EQ(here(address + 77), 3);
  EXPECT_TRUE(found().empty());
  EXPECT_TRUE(blocks_.drop(address));
}

/// It is known here as sent.
TEST_F(MirrorsTest, WhatWasFoundBeforeTheDeviceRefusedIsTold) {
  std::uint64_t address = 0;
  ASSERT_EQ(blocks_.allocate_managed({page, 0, CU_MEM_ATTACH_GLOBAL}, 0, 1, 1, address), CUDA_SUCCESS);
  ASSERT_LT(base, address);  // looks go upwards
  ASSERT_EQ(map(base, page), CUDA_SUCCESS);
  for (const bool live : {false, true}) {
    here(base + 8) = live ? 5 : 4;
    device_->fail("cuMemcpyDtoHAsync_v2", CUDA_ERROR_LAUNCH_FAILED, 1);
    marshal::memory_question question;
    question.live = live;
    std::vector<std::byte> changes;
    ASSERT_EQ(blocks_.answer(question, 1, changes), CUDA_SUCCESS);
    EXPECT_EQ(changes, one_byte(base, page, 8, std::byte(live ? 5 : 4)));
    EXPECT_NE(question.at.address, 0u);
    changes.clear();
    EXPECT_EQ(blocks_.answer(question, 1, changes), CUDA_ERROR_LAUNCH_FAILED);
    question.at = {};
    EXPECT_EQ(blocks_.answer(question, 1, changes), CUDA_SUCCESS);
    EXPECT_TRUE(changes.empty());
    EXPECT_EQ(question.at.address, 0u);
  }
}

}  // namespace
}  // namespace outboard::backend
