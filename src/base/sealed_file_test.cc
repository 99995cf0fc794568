#include "base/sealed_file.hh"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>

namespace outboard {
namespace {

TEST(sealed_file, nobody_changes_its_size) {
  const unique_fd file = make_sealed_file(8192, "test");
  ASSERT_TRUE(file);
  EXPECT_EQ(size_of_sealed_file(file.get()), 8192u);
  EXPECT_NE(::ftruncate(file.get(), 4096), 0);
  EXPECT_NE(::ftruncate(file.get(), 16384), 0);
  EXPECT_NE(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
}

TEST(sealed_file, an_ordinary_file_is_not_one) {
  const unique_fd open_file(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(open_file.get(), 4096), 0);
  EXPECT_FALSE(size_of_sealed_file(open_file.get()).has_value());
  const unique_fd device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(size_of_sealed_file(device.get()).has_value());
  EXPECT_FALSE(size_of_sealed_file(-1).has_value());
}

TEST(sealed_file, a_limit_on_file_size_raises_no_signal) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit low{1u << 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &low), 0);
  const bool made = static_cast<bool>(make_sealed_file(2u << 20, "test"));
  const int why = errno;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(made);
  EXPECT_EQ(why, EFBIG);
}

}  // namespace
}  // namespace outboard
