#include "transport/local_peer.hh"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "base/fd.hh"
#include "base/temporary_folder.hh"

namespace outboard::transport {
namespace {

/// A folder with a socket in it, which belongs to `owner` where this process may say so.
class local_peer : public testing::Test {
 protected:
  void make(std::string folder) {
    folder_ = std::move(folder);
    path_ = folder_ + "/socket";
    socket_.reset(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(socket_.get(), 1), 0);
  }
  void TearDown() override {
    ::unlink(path_.c_str());
    ::rmdir(folder_.c_str());
  }
  std::string folder_, path_;
  unique_fd socket_;
};

TEST_F(local_peer, a_squatter_in_a_folder_for_everybody_is_refused) {
  const auto folder = make_temporary_folder("local_peer_test");
  ASSERT_TRUE(folder.ok());
  make(*folder);
  const uid_t me = ::geteuid(), victim = 40001, squatter = me == 0 ? 40002 : me;
  if (me == 0) {
    ASSERT_EQ(::chown(folder_.c_str(), squatter, squatter), 0);
    ASSERT_EQ(::chown(path_.c_str(), squatter, squatter), 0);
  }
  const status judged = may_serve(path_, squatter, victim);
  ASSERT_FALSE(judged.ok());
  EXPECT_NE(judged.error().message.find("anybody may make files in"), std::string::npos);
  EXPECT_NE(judged.error().message.find("such as /run/outboard"), std::string::npos) << "the cure";
  EXPECT_TRUE(may_serve(path_, 0, victim).ok()) << "root may serve from anywhere";
  EXPECT_TRUE(may_serve(path_, victim, victim).ok()) << "and so may the user itself";
}

TEST_F(local_peer, a_service_with_a_user_of_its_own_is_trusted_in_its_folder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes folders of others";
  const std::string folder = "/run/outboard-local-peer-test-" + std::to_string(::getpid());
  if (::mkdir(folder.c_str(), 0755) != 0) GTEST_SKIP() << "there is no /run to write in";
  const uid_t service = 40003, client = 40001;
  make(folder);
  ASSERT_EQ(::chown(folder.c_str(), service, service), 0);
  ASSERT_EQ(::chown(path_.c_str(), service, service), 0);
  EXPECT_TRUE(may_serve(path_, service, client).ok());
  EXPECT_FALSE(may_serve(path_, 40004, client).ok()) << "another listens where the service's socket was";
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_FALSE(may_serve(path_, service, client).ok()) << "anybody could have replaced the socket";
}

TEST_F(local_peer, a_link_of_a_squatter_to_its_home_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes folders of others";
  const std::string home = "/run/outboard-local-peer-home-" + std::to_string(::getpid());
  if (::mkdir(home.c_str(), 0755) != 0) GTEST_SKIP() << "there is no /run to write in";
  const uid_t squatter = 40002, victim = 40001;
  make(home);
  ASSERT_EQ(::chown(home.c_str(), squatter, squatter), 0);
  ASSERT_EQ(::chown(path_.c_str(), squatter, squatter), 0);
  const std::string link = "/tmp/outboard-local-peer-link-" + std::to_string(::getpid());
  ASSERT_EQ(::symlink(home.c_str(), link.c_str()), 0);
  ASSERT_EQ(::lchown(link.c_str(), squatter, squatter), 0);
  EXPECT_TRUE(may_serve(path_, squatter, victim).ok()) << "where it was named itself";
  EXPECT_FALSE(may_serve(link + "/socket", squatter, victim).ok());
  ::unlink(link.c_str());
}

TEST_F(local_peer, a_folder_of_the_client_in_tmp_may_hold_a_services_folder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root makes folders of others";
  const auto outer = make_temporary_folder("local_peer_test");
  ASSERT_TRUE(outer.ok());
  const std::string inner = *outer + "/mounted";
  ASSERT_EQ(::mkdir(inner.c_str(), 0755), 0);
  make(inner);
  const uid_t service = 40003, client = 40001;
  ASSERT_EQ(::chmod(outer->c_str(), 0755), 0);
  for (const std::string& each : {inner, path_}) ASSERT_EQ(::chown(each.c_str(), service, service), 0);
  for (const uid_t owner : {uid_t{0}, client}) {
    ASSERT_EQ(::chown(outer->c_str(), owner, owner), 0);
    EXPECT_TRUE(may_serve(path_, service, client).ok()) << owner;
  }
  ASSERT_EQ(::chown(outer->c_str(), service, service), 0);
  EXPECT_FALSE(may_serve(path_, service, client).ok()) << "it was first in /tmp";
  ASSERT_EQ(::chown(outer->c_str(), client, client), 0);
  ASSERT_EQ(::chmod(outer->c_str(), 0777), 0);
  EXPECT_FALSE(may_serve(path_, service, client).ok())
      << "not sticky: anybody could have replaced the folder";
  TearDown();
  ::rmdir(outer->c_str());
}

TEST_F(local_peer, the_kernel_says_who_listens) {
  const auto folder = make_temporary_folder("local_peer_test");
  ASSERT_TRUE(folder.ok());
  make(*folder);
  unique_fd client(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_TRUE(check_server(client.get(), path_).ok());
}

}  // namespace
}  // namespace outboard::transport
