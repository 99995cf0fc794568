// Programs of several processes: scenes of two sides, each side a process of its own that is forked before
// anybody uses CUDA, or started anew (spawned). The sides talk over a socket, as CUDA programs do that share
// memory.
#pragma once

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "common.hh"

class channel {
 public:
  explicit channel(int fd) : fd_(fd) {}

  template <class T>
  void put(const T& value) {
    EXPECT(::send(fd_, &value, sizeof value, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof value));
  }
  template <class T>
  T take() {
    T value{};
    EXPECT(::recv(fd_, &value, sizeof value, MSG_WAITALL) == static_cast<ssize_t>(sizeof value));
    return value;
  }
  /// "I am here": whatever was done before has been done.
  void tell() { put(char{1}); }
  void hear() { (void)take<char>(); }
  /// The other side has ended.
  void hear_end() {
    char nothing;
    EXPECT(::recv(fd_, &nothing, 1, 0) <= 0);
  }

  void put_descriptor(int fd) {
    char byte = 1;
    iovec part{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof fd)] = {};
    msghdr m{};
    m.msg_iov = &part, m.msg_iovlen = 1;
    m.msg_control = room, m.msg_controllen = sizeof room;
    cmsghdr* c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    EXPECT(::sendmsg(fd_, &m, MSG_NOSIGNAL) == 1);
  }
  int take_descriptor() {
    char byte;
    iovec part{&byte, 1};
    alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {};
    msghdr m{};
    m.msg_iov = &part, m.msg_iovlen = 1;
    m.msg_control = room, m.msg_controllen = sizeof room;
    EXPECT(::recvmsg(fd_, &m, 0) == 1 && CMSG_FIRSTHDR(&m));
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    return fd;
  }

 private:
  int fd_;
};

struct scene {
  const char* name;
  void (*first)(channel&);
  void (*second)(channel&);
  bool spawned = false;       ///< start both sides anew
  bool first_killed = false;  ///< the first side ends by SIGKILL, on purpose
  bool second_killed = false;
};

inline pid_t start_side(const char* program, const scene& s, int number, int side, int fd, int other) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  EXPECT(child >= 0);
  if (child != 0) return child;
  ::close(other);
  if (s.spawned) {
    ::execl("/proc/self/exe", program, "--side", std::to_string(number).c_str(), std::to_string(side).c_str(),
            std::to_string(fd).c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }
  channel to(fd);
  (side == 0 ? s.first : s.second)(to);
  std::exit(0);
}

/// A side that was to be killed has been; any other has ended well.
inline bool ended_well(pid_t child, bool killed) {
  int status = 0;
  EXPECT(::waitpid(child, &status, 0) == child);
  return killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                : WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

inline int play(const char* name, const std::vector<scene>& scenes, int count, char** values) {
  if (count == 5 && std::string(values[1]) == "--side") {
    const scene& s = scenes.at(static_cast<std::size_t>(std::atoi(values[2])));
    channel to(std::atoi(values[4]));
    (std::atoi(values[3]) == 0 ? s.first : s.second)(to);
    return 0;
  }
  struct sides {
    const scene* of;
    pid_t first, second;
  };
  std::vector<sides> running;
  const auto await = [&] {
    for (const sides& each : running) {
      const bool well =
          ended_well(each.first, each.of->first_killed) & ended_well(each.second, each.of->second_killed);
      std::printf("%s %s\n", well ? "ok" : "FAIL", each.of->name);
      EXPECT(well);
    }
    running.clear();
  };
  for (std::size_t i = 0; i < scenes.size(); i++) {
    const scene& s = scenes[i];
    if (count == 2 && std::string(values[1]) != s.name) continue;
    int pair[2];
    EXPECT(::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    const pid_t first = start_side(values[0], s, static_cast<int>(i), 0, pair[0], pair[1]);
    const pid_t second = start_side(values[0], s, static_cast<int>(i), 1, pair[1], pair[0]);
    ::close(pair[0]);
    ::close(pair[1]);
    running.push_back({&s, first, second});
    // Who outlives a killed one waits a while: such scenes wait together.
    if (!s.first_killed && !s.second_killed) await();
  }
  await();
  return pass(name);
}
