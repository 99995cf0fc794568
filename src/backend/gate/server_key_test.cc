#include "backend/gate/server_key.hh"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "transport/tls/library.hh"

namespace outboard::backend {
namespace {

using ::testing::HasSubstr;

class server_key : public ::testing::Test {
 protected:
  void SetUp() override {
    auto loaded = transport::tls::load();
    if (!loaded.ok()) GTEST_SKIP() << loaded.error().message;
    library_ = *loaded;
    folder_ = ::testing::TempDir() + "server_key-" + std::to_string(::getpid());
    path_ = folder_ + "/state/server_key.pem";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string problem() const {
    const auto got = own_certificate(*library_, path_);
    return got.ok() ? "" : got.error().message;
  }

  transport::tls::library* library_ = nullptr;
  std::string folder_, path_;
};

TEST_F(server_key, is_made_once_for_its_user_alone) {
  std::string other;
  std::thread faster([&] { other = *own_certificate(*library_, path_); });
  const auto made = own_certificate(*library_, path_);
  faster.join();
  ASSERT_TRUE(made.ok());
  const auto again = own_certificate(*library_, path_);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *made);
  EXPECT_EQ(other, *made);
  struct stat about {};
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ + "/state"), {}), 1)
      << "a draft is left";
  EXPECT_TRUE(library_->make_server({*made, *made, {}, false}).ok());
}

TEST_F(server_key, that_others_may_read_is_refused) {
  ASSERT_EQ(problem(), "");
  ASSERT_EQ(::chmod(path_.c_str(), 0640), 0);
  EXPECT_THAT(problem(), HasSubstr("may be read by others"));
}

TEST_F(server_key, needs_a_place) {
  path_ = "";
  EXPECT_THAT(problem(), HasSubstr("own_key"));
  path_ = "/proc/nowhere/server_key.pem";
  EXPECT_THAT(problem(), HasSubstr("/proc/nowhere"));
}

TEST_F(server_key, that_is_no_file_is_refused) {
  std::filesystem::create_directories(path_);
  EXPECT_THAT(problem(), HasSubstr(path_));
}

}  // namespace
}  // namespace outboard::backend
