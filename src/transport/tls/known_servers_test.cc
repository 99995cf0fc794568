#include "transport/tls/known_servers.hh"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "transport/tls/peer_place.hh"

namespace outboard::transport::tls {
namespace {

TEST(known_servers, finds_the_lines_of_one_server) {
  const auto found = find_known(
      "# my servers\n\ngpubox:1 SHA256:aa\r\n  gpubox:1\tSHA256:bb since May\ngpubox:2 SHA256:cc\ngpubox:1 "
      "md5\ngpubox:1",
      "gpubox:1");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].fingerprint, "SHA256:aa");
  EXPECT_EQ(found[0].line, 3u);
  EXPECT_EQ(found[1].fingerprint, "SHA256:bb");
  EXPECT_EQ(found[1].line, 4u);
  EXPECT_TRUE(find_known("", "gpubox:1").empty());
}

TEST(known_servers, adds_each_line_once_for_its_user_alone) {
  const std::string folder = ::testing::TempDir() + "known-" + std::to_string(::getpid());
  const std::string path = folder + "/deep/known_servers";
  std::thread other([&] { EXPECT_TRUE(add_known(path, "a:1", "SHA256:x").ok()); });
  EXPECT_TRUE(add_known(path, "a:1", "SHA256:x").ok());
  other.join();
  EXPECT_TRUE(add_known(path, "b:1", "SHA256:y").ok());
  const auto text = read_known(path);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "a:1 SHA256:x\nb:1 SHA256:y\n");
  struct stat about {};
  ASSERT_EQ(::stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  std::filesystem::remove_all(folder);
  EXPECT_EQ(*read_known(path), "");
}

TEST(peer_place, tells_this_machine_from_others) {
  for (const char* here :
       {"tcp:127.0.0.1:5", "tcp:127.8.9.1:5", "tcp:[::1]:5", "tcp:localhost:5", "tcp:[::ffff:127.0.0.1]:5"})
    EXPECT_TRUE(is_on_this_host(here)) << here;
  for (const char* beyond : {"tcp:0.0.0.0:5", "tcp:[::]:5", "tcp:10.0.0.1:5", "tcp:gpubox:5",
                             "tcp:128.0.0.1:5", "x", "tcp:127.0.0.1"})
    EXPECT_FALSE(is_on_this_host(beyond)) << beyond;
}

}  // namespace
}  // namespace outboard::transport::tls
