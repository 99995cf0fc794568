#include "frontend/opencl/svm_book.hh"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sealed_file.hh"

namespace outboard::frontend::opencl {
namespace {

// Workers map here, and programs have nothing here.
constexpr std::uint64_t base = 0x2aaa'0000'0000;

void* at(std::uint64_t offset) { return reinterpret_cast<void*>(base + offset); }

TEST(svm_book, blocks_are_usable_at_their_addresses) {
  svm_book book;
  ASSERT_TRUE(book.add(base + 64, 10000, nullptr));
  *static_cast<int*>(at(64)) = 5;
  *static_cast<int*>(at(10060)) = 6;
  EXPECT_TRUE(book.find(at(64), 10000)->whole);
  EXPECT_FALSE(book.find(at(65), 10000)->whole);
  EXPECT_FALSE(book.find(at(63)).has_value());
  EXPECT_FALSE(book.find(at(10064)).has_value());
  EXPECT_FALSE(book.remove(at(65)).has_value());
  EXPECT_TRUE(book.remove(at(64)).has_value());
  EXPECT_FALSE(book.find(at(64)).has_value());
}

TEST(svm_book, neighbours_on_a_page_keep_their_bytes) {
  svm_book book;
  ASSERT_TRUE(book.add(base + 0x10'0000, 128, nullptr));
  ASSERT_TRUE(book.add(base + 0x10'0080, 3 * 4096, nullptr));
  *static_cast<int*>(at(0x10'0000)) = 7;
  EXPECT_TRUE(book.remove(at(0x10'0080)).has_value());
  EXPECT_EQ(*static_cast<int*>(at(0x10'0000)), 7);
  EXPECT_TRUE(book.remove(at(0x10'0000)).has_value());
}

TEST(svm_book, existing_memory_is_left_alone) {
  void* const taken = ::mmap(at(0x20'0000), 4096, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  ASSERT_EQ(taken, at(0x20'0000));
  svm_book book;
  EXPECT_FALSE(book.add(base + 0x1f'f000, 3 * 4096, nullptr));
  EXPECT_FALSE(book.find(at(0x1f'f000)).has_value());
  ::munmap(taken, 4096);
}

TEST(svm_book, blocks_of_two_servers_do_not_overlap) {
  svm_book book;
  ASSERT_TRUE(book.add(base + 0x40'0000, 0x2000, nullptr));
  EXPECT_FALSE(book.add(base + 0x40'1000, 0x2000, nullptr));
  EXPECT_FALSE(book.add(base + 0x3f'f000, 0x1001, nullptr));
  EXPECT_FALSE(book.add(base + 0x40'0800, 16, nullptr));
  EXPECT_TRUE(book.add(base + 0x40'2000, 0x1000, nullptr));
  EXPECT_TRUE(book.remove(at(0x40'0000)).has_value());
  EXPECT_TRUE(book.add(base + 0x40'0800, 16, nullptr));
}

TEST(svm_book, mappings_are_taken_out_latest_first) {
  svm_book book;
  ASSERT_TRUE(book.add(base + 0x30'0000, 4096, nullptr));
  book.map({at(0x30'0010), 16, CL_MAP_READ});
  book.map({at(0x30'0010), 32, CL_MAP_WRITE});
  EXPECT_EQ(book.unmap(at(0x30'0010))->size, 32u);
  EXPECT_EQ(book.unmap(at(0x30'0010))->size, 16u);
  EXPECT_FALSE(book.unmap(at(0x30'0010)).has_value());
}

/// Like the server's: each byte is at the offset of its address.
unique_fd file_of_server() { return make_sealed_file(1ull << 48, "test"); }

char* view_of(int file, std::uint64_t offset, std::size_t size) {
  void* const view =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(base + offset));
  return view == MAP_FAILED ? nullptr : static_cast<char*>(view);
}

TEST(svm_book, shares_the_servers_pages) {
  svm_book book;
  const unique_fd file = file_of_server();
  ASSERT_TRUE(book.add(base + 0x50'0000, 5000, nullptr, file.get()));
  EXPECT_TRUE(book.find(at(0x50'0000), 5000)->same_pages);
  EXPECT_FALSE(book.find(at(0x50'0000 + 5000)).has_value()) << "the rest of its page is unused";
  char* const view = view_of(file.get(), 0x50'0000, 8192);
  ASSERT_NE(view, nullptr);
  *static_cast<char*>(at(0x50'0000 + 4999)) = 4;
  EXPECT_EQ(view[4999], 4);
  view[0] = 5;
  EXPECT_EQ(*static_cast<char*>(at(0x50'0000)), 5);
  // No other block gets a part of these pages, and they are removed with the block.
  EXPECT_FALSE(book.add(base + 0x50'0000 + 6000, 16, nullptr));
  EXPECT_TRUE(book.remove(at(0x50'0000)).has_value());
  ASSERT_TRUE(book.add(base + 0x50'0000 + 6000, 16, nullptr));
  *static_cast<char*>(at(0x50'0000 + 6000)) = 6;
  EXPECT_EQ(view[6000], 0);
  EXPECT_FALSE(book.find(at(0x50'0000 + 6000))->same_pages);
  ::munmap(view, 8192);
}

TEST(svm_book, files_that_can_lose_pages_are_refused) {
  svm_book book;
  const unique_fd open_file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open_file.get(), 1ll << 48), 0);
  EXPECT_FALSE(book.add(base + 0x60'0000, 4096, nullptr, open_file.get()));
  const unique_fd small = make_sealed_file(base + 0x60'0000, "test");
  EXPECT_FALSE(book.add(base + 0x60'0000, 4096, nullptr, small.get()));
  const unique_fd file = file_of_server();
  EXPECT_FALSE(book.add(base + 0x60'0010, 4096, nullptr, file.get())) << "these are not whole pages";
  EXPECT_FALSE(book.find(at(0x60'0010)).has_value());
}

}  // namespace
}  // namespace outboard::frontend::opencl
