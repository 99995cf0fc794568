#include "backend/opencl/shared_pages.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "base/pages.hh"
#include "base/sealed_file.hh"

namespace outboard::backend::opencl {
namespace {

class shared_pages_test : public testing::Test {
 protected:
  void SetUp() override {
    if (!all_.open()) GTEST_SKIP() << "not on this system";
    // As an allocator returns it: between two other blocks, not aligned.
    block_ = static_cast<unsigned char*>(std::malloc(6 * page_size()));
    std::memset(block_, 0x11, 6 * page_size());
    address_ = page_up(reinterpret_cast<std::uint64_t>(block_));
    size_ = 3 * page_size();
  }
  void TearDown() override { std::free(block_); }
  unsigned char* here(std::uint64_t offset = 0) const {
    return reinterpret_cast<unsigned char*>(address_ + offset);
  }
  /// The client's mapping.
  unsigned char* there(std::uint64_t size) const {
    void* const at =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, all_.file(), static_cast<off_t>(address_));
    return at == MAP_FAILED ? nullptr : static_cast<unsigned char*>(at);
  }

  shared_pages all_;
  unsigned char* block_ = nullptr;
  std::uint64_t address_ = 0, size_ = 0;
};

TEST_F(shared_pages_test, both_sides_see_the_same_bytes) {
  ASSERT_TRUE(all_.share(address_, size_));
  unsigned char* const view = there(size_);
  ASSERT_NE(view, nullptr);
  EXPECT_EQ(view[100], 0) << "what lay there before is not shown";
  view[100] = 5;
  EXPECT_EQ(*here(100), 5);
  *here(size_ - 1) = 6;
  EXPECT_EQ(view[size_ - 1], 6);
  EXPECT_EQ(*here(size_), 0x11) << "what lies behind is left alone";
  EXPECT_EQ(block_[0], 0x11);
  // Pages that were taken back are ours alone, even if the client still maps the file.
  ASSERT_TRUE(all_.take_back(address_, size_));
  EXPECT_EQ(*here(100), 0);
  *here(100) = 7;
  view[100] = 8;
  EXPECT_EQ(*here(100), 7);
  ::munmap(view, size_);
}

TEST_F(shared_pages_test, a_block_may_be_shared_again_and_is_zero) {
  ASSERT_TRUE(all_.share(address_, size_));
  *here(5) = 9;
  ASSERT_TRUE(all_.take_back(address_, size_));
  ASSERT_TRUE(all_.share(address_, size_));
  EXPECT_EQ(*here(5), 0);
  EXPECT_TRUE(all_.take_back(address_, size_));
}

TEST_F(shared_pages_test, only_ordinary_memory_is_shared) {
  EXPECT_FALSE(all_.share(address_ + 64, size_)) << "not whole pages";
  EXPECT_FALSE(all_.share(address_, 100));
  EXPECT_FALSE(all_.share(address_, 0));
  EXPECT_FALSE(all_.share(0, page_size()));
  EXPECT_FALSE(all_.share(~std::uint64_t{0} / page_size() * page_size(), page_size()));
  const unique_fd file = make_sealed_file(page_size(), "test");
  const auto mapped = [&](int flags, int fd, int access) {
    return ::mmap(nullptr, page_size(), access, flags, fd, 0);
  };
  for (void* const other : {mapped(MAP_PRIVATE | MAP_ANONYMOUS, -1, PROT_READ),
                            mapped(MAP_SHARED | MAP_ANONYMOUS, -1, PROT_READ | PROT_WRITE),
                            mapped(MAP_PRIVATE, file.get(), PROT_READ | PROT_WRITE)}) {
    ASSERT_NE(other, MAP_FAILED);
    EXPECT_FALSE(all_.share(reinterpret_cast<std::uint64_t>(other), page_size()));
    ::munmap(other, page_size());
    EXPECT_FALSE(all_.share(reinterpret_cast<std::uint64_t>(other), page_size())) << "nothing lies there";
  }
}

/// The client has the file's descriptor, and must not be able to make this process fault.
TEST_F(shared_pages_test, the_client_can_take_no_page_away) {
  ASSERT_TRUE(all_.share(address_, size_));
  *here(0) = 1;
  EXPECT_NE(::ftruncate(all_.file(), 0), 0);
  EXPECT_NE(::ftruncate(all_.file(), static_cast<off_t>(address_)), 0);
  ::fallocate(all_.file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address_),
              static_cast<off_t>(size_));
  EXPECT_EQ(*here(0), 0);
  *here(0) = 2;
  EXPECT_EQ(*here(0), 2);
  EXPECT_TRUE(all_.take_back(address_, size_));
}

}  // namespace
}  // namespace outboard::backend::opencl
