#include "transport/unix/unix.hh"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

// What only unix: has: the file, its mode, and files that dead servers left. The protocol suite
// (transport/suite_test.cc) tests the rest.
namespace outboard::transport {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class unix_files : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "outboard-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/socket";
  }
  void TearDown() override {
    ::unlink(path_.c_str());
    EXPECT_EQ(::rmdir(folder_.c_str()), 0) << "something was left in " << folder_;
  }

  std::string refusal(const std::string& path) {
    auto l = unix_->listen(path, {});
    return l ? "listens" : l.error().message;
  }
  mode_t mode() {
    struct stat s {};
    return ::lstat(path_.c_str(), &s) == 0 ? s.st_mode : 0;
  }
  static deadline soon() { return clock::now() + 20s; }

  std::unique_ptr<transport> unix_ = make_unix();
  std::string folder_, path_;
};

TEST_F(unix_files, the_socket_is_private_under_any_umask) {
  for (mode_t mask : {0000, 0022, 0077, 0777}) {
    mode_t before = ::umask(mask);
    auto l = unix_->listen(path_, {});
    mode_t after = ::umask(before);
    ASSERT_TRUE(l) << l.error().message;
    EXPECT_EQ(after, mask);  // a test may use it, not change it
    EXPECT_EQ(mode(), S_IFSOCK | 0600u) << "umask " << mask;
    EXPECT_EQ((*l)->url(), "unix:" + path_);
    EXPECT_TRUE(unix_->connect(path_, soon()));
  }
}

TEST_F(unix_files, the_socket_is_removed_with_its_listener) {
  auto l = unix_->listen(path_, {});
  ASSERT_TRUE(l);
  l->reset();
  EXPECT_EQ(mode(), 0u);
}

TEST_F(unix_files, a_listener_removes_only_its_own_file) {
  auto l = unix_->listen(path_, {});
  ASSERT_TRUE(l);
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  auto other = unix_->listen(path_, {});
  ASSERT_TRUE(other) << other.error().message;
  l->reset();
  EXPECT_EQ(mode(), S_IFSOCK | 0600u);
  EXPECT_TRUE(unix_->connect(path_, soon()));
}

TEST_F(unix_files, a_forked_child_leaves_the_file) {
  auto l = unix_->listen(path_, {});
  ASSERT_TRUE(l);
  pid_t child = ::fork();
  if (child == 0) {
    l->reset();
    ::_exit(0);
  }
  int code = -1;
  ASSERT_EQ(::waitpid(child, &code, 0), child);
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(unix_->connect(path_, soon()));
}

// Makes a socket file like one that a killed server leaves.
void leave_socket(const std::string& path, int type) {
  int fd = ::socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  path.copy(a.sun_path, sizeof a.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  ::close(fd);
}

TEST_F(unix_files, the_socket_of_a_dead_server_is_replaced) {
  leave_socket(path_, SOCK_STREAM);
  auto stale = unix_->connect(path_, soon());
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().next, action::retry);
  EXPECT_THAT(stale.error().message, HasSubstr("no server listens there any more"));
  auto l = unix_->listen(path_, {});
  ASSERT_TRUE(l) << l.error().message;
  EXPECT_TRUE(unix_->connect(path_, soon()));
}

TEST_F(unix_files, what_is_not_a_dead_server_is_left_alone) {
  auto live = unix_->listen(path_, {.backlog = 1});
  ASSERT_TRUE(live);
  EXPECT_THAT(refusal(path_), HasSubstr("another server listens there already"));
  std::vector<std::unique_ptr<connection>> queue;  // also when it is too busy to answer
  for (;;) {
    auto c = unix_->connect(path_, clock::now() + 20ms);
    if (!c) break;
    queue.push_back(std::move(*c));
    ASSERT_LT(queue.size(), 100u);
  }
  EXPECT_THAT(refusal(path_), HasSubstr("another server listens there already"));
  EXPECT_EQ(mode(), S_IFSOCK | 0600u);
  live->reset();

  std::ofstream(path_) << "precious";
  EXPECT_THAT(refusal(path_), HasSubstr("a file that is not a socket is in the way"));
  std::string content;
  std::ifstream(path_) >> content;
  EXPECT_EQ(content, "precious");
  ::unlink(path_.c_str());

  ASSERT_EQ(::symlink("elsewhere", path_.c_str()), 0);
  EXPECT_THAT(refusal(path_), HasSubstr("a file that is not a socket is in the way"));
}

TEST_F(unix_files, a_full_queue_times_out) {
  auto l = unix_->listen(path_, {.backlog = 1});
  ASSERT_TRUE(l);
  std::vector<std::unique_ptr<connection>> queue;
  for (int i = 0; i < 100; ++i) {
    auto c = unix_->connect(path_, clock::now() + 20ms);
    if (c) {
      queue.push_back(std::move(*c));
      continue;
    }
    EXPECT_EQ(c.error().next, action::retry);
    EXPECT_THAT(c.error().message, HasSubstr("did not accept the connection in time"));
    return;
  }
  FAIL() << "the queue never filled";
}

TEST_F(unix_files, only_one_of_many_servers_gets_the_place) {
  for (int round = 0; round < 20; ++round) {
    leave_socket(path_, SOCK_STREAM);
    std::atomic<int> winners{0};
    std::vector<std::unique_ptr<listener>> listeners(4);
    std::vector<std::thread> servers;
    for (auto& mine : listeners)
      servers.emplace_back([&] {
        auto l = unix_->listen(path_, {});
        if (l) mine = std::move(*l), ++winners;
      });
    for (std::thread& t : servers) t.join();
    EXPECT_EQ(winners, 1);
    EXPECT_TRUE(unix_->connect(path_, soon()));
  }
}

TEST_F(unix_files, refuses_impossible_paths) {
  EXPECT_THAT(refusal("/" + std::string(107, 'a')), HasSubstr("108 bytes, sockets take at most 107"));
  EXPECT_THAT(unix_->connect("/" + std::string(107, 'a'), soon()).error().message, HasSubstr("at most 107"));
  EXPECT_THAT(refusal("relative"), HasSubstr("must begin with /"));
  EXPECT_THAT(refusal(""), HasSubstr("needs the path"));
  EXPECT_THAT(refusal(std::string("/a\0b", 4)), HasSubstr("NUL"));
  EXPECT_THAT(refusal(folder_ + "/missing/socket"), HasSubstr("No such file"));
  auto nobody = unix_->connect(path_, soon());
  ASSERT_FALSE(nobody);
  EXPECT_THAT(nobody.error().message, HasSubstr("the socket does not exist"));
}

TEST_F(unix_files, the_longest_path_works) {
  std::string path = folder_ + "/";
  path += std::string(107 - path.size(), 'x');
  auto l = unix_->listen(path, {});
  ASSERT_TRUE(l) << l.error().message;
  EXPECT_TRUE(unix_->connect(path, soon()));
}

TEST_F(unix_files, adopts_a_listening_socket_and_leaves_its_file) {
  int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un a{};
  a.sun_family = AF_UNIX;
  path_.copy(a.sun_path, sizeof a.sun_path - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&a), sizeof a), 0);
  unique_fd early(::dup(fd));
  EXPECT_FALSE(unix_->adopt_listener(std::move(early)));  // does not listen yet
  ASSERT_EQ(::listen(fd, 5), 0);
  {
    auto l = unix_->adopt_listener(unique_fd(fd));
    ASSERT_TRUE(l) << l.error().message;
    EXPECT_EQ((*l)->url(), "unix:" + path_);
    EXPECT_TRUE(::fcntl(fd, F_GETFD) & FD_CLOEXEC);
    auto c = unix_->connect(path_, soon());
    ASSERT_TRUE(c);
    EXPECT_TRUE((*l)->accept(soon()));
  }
  EXPECT_NE(mode(), 0u);
}

TEST_F(unix_files, credentials_are_those_of_the_other_process) {
  auto l = unix_->listen(path_, {});
  ASSERT_TRUE(l);
  pid_t child = ::fork();
  if (child == 0) {
    auto c = unix_->connect(path_, soon());
    std::byte b;
    if (c) (void)(*c)->receive({&b, 1}, soon());
    ::_exit(0);
  }
  auto c = (*l)->accept(soon());
  ASSERT_TRUE(c);
  auto who = (*c)->peer();
  ASSERT_TRUE(who);
  EXPECT_EQ(who->process, child);
  c->reset();
  ::waitpid(child, nullptr, 0);
}

// A hostile peer may attach more than one descriptor, also to ordinary bytes: none of them may stay open
// here.
TEST_F(unix_files, surplus_descriptors_of_a_peer_are_closed) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  auto c = unix_->attach(unique_fd(ends[0]));
  ASSERT_TRUE(c) << c.error().message;
  auto count = [] {
    int open = 0;
    for (int fd = 0; fd < 1000; ++fd) open += ::fcntl(fd, F_GETFD) >= 0;
    return open;
  };
  int before = count();
  alignas(cmsghdr) char control[CMSG_SPACE(50 * sizeof(int))] = {};
  char text[4] = {'a', 'b', 'c', 'd'};
  iovec part{text, sizeof text};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* h = CMSG_FIRSTHDR(&message);
  h->cmsg_level = SOL_SOCKET;
  h->cmsg_type = SCM_RIGHTS;
  h->cmsg_len = CMSG_LEN(50 * sizeof(int));  // fifty times descriptor 0
  ASSERT_EQ(::sendmsg(ends[1], &message, 0), 4);
  std::byte into[16];
  std::size_t have = 0;
  while (have < 4) {
    io_result r = (*c)->receive(into, soon());
    ASSERT_EQ(r.status, io::done);
    have += r.bytes;
  }
  EXPECT_EQ(have, 4u);
  EXPECT_EQ(count(), before);
  ::close(ends[1]);
}

}  // namespace
}  // namespace outboard::transport
