#include "base/file_bytes.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/fd.hh"

namespace outboard {
namespace {

TEST(file_bytes, what_is_written_is_read_up_to_the_limit) {
  const unique_fd file(::memfd_create("file", MFD_CLOEXEC));
  const std::string text = std::string(40000, 'x') + "end";
  ASSERT_TRUE(write_whole(file.get(), text));
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  EXPECT_EQ(read_whole(file.get(), "it", text.size()).value(), text);
  ASSERT_EQ(::lseek(file.get(), 0, SEEK_SET), 0);
  const auto cut = read_whole(file.get(), "it", text.size() - 1);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().message, "it is too large: it may have 40002 bytes");
}

TEST(file_bytes, pieces_of_a_pipe_are_one_text) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const unique_fd out(ends[0]);
  unique_fd in(ends[1]);
  const std::string text(300000, 'y');  // more than a pipe holds
  std::thread writer([&] {
    EXPECT_TRUE(write_whole(in.get(), text));
    in.reset();
  });
  EXPECT_EQ(read_whole(out.get(), "it", 1u << 20).value(), text);
  writer.join();
}

TEST(file_bytes, what_cannot_be_read_or_written_is_named) {
  const unique_fd folder(::open("/", O_RDONLY | O_CLOEXEC));
  const auto read = read_whole(folder.get(), "/", 100);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "cannot read /: Is a directory");
  EXPECT_FALSE(write_whole(folder.get(), "x"));
}

}  // namespace
}  // namespace outboard
