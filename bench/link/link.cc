#include "link.hh"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>

namespace bench {
namespace {

constexpr nanoseconds microsecond = 1000, never = INT64_MAX;
constexpr nanoseconds entrance = 1000 * microsecond, longest_delay = 50'000 * microsecond;
constexpr std::size_t largest_piece = 256 << 10;
/// More than a link of 100 Gb/s and a round trip of 1 ms has under way and waiting at its entrance.
constexpr std::size_t capacity = 32 << 20;

/// A thread that sleeps wakes late by 5 to 50 µs; where there are cores to spare it looks again and again.
nanoseconds patience() {
  static const nanoseconds some = std::thread::hardware_concurrency() >= 8 ? 100 * microsecond : 0;
  return some;
}

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

nanoseconds clock_now(clockid_t which) {
  timespec t{};
  ::clock_gettime(which, &t);
  return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

sockaddr_in parse(const std::string& address) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos || ::inet_pton(AF_INET, address.substr(0, colon).c_str(), &at.sin_addr) != 1) {
    std::fprintf(stderr, "%s is no host:port by number\n", address.c_str());
    std::exit(2);
  }
  at.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
  return at;
}

int tcp_socket() {
  const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0) fail("socket");
  return s;
}

/// Sends at once, and reports when the kernel got received bytes, so that our own delay does not add to the
/// link's.
void prepare(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::setsockopt(socket, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
}

/// Both sockets of a connection; closed when neither direction needs them.
struct ends {
  int client, server;
  ends(int c, int s) : client(c), server(s) {}
  ends(const ends&) = delete;
  ~ends() {
    ::close(client);
    ::close(server);
  }
  /// The connection broke: no thread may wait for the other direction.
  void cut() const {
    ::shutdown(client, SHUT_RDWR);
    ::shutdown(server, SHUT_RDWR);
  }
};

/// A ring of bytes in one block of memory.
class ring {
 public:
  ring() : memory_(::mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    if (memory_ == MAP_FAILED) fail("mmap");
  }
  ring(const ring&) = delete;
  ~ring() { ::munmap(memory_, capacity); }

  std::size_t room() const { return capacity - held_; }
  /// The contiguous parts of the free and of the used space.
  iovec free_part(std::size_t most) const {
    const std::size_t at = (first_ + held_) % capacity;
    return {static_cast<char*>(memory_) + at, std::min({most, capacity - at, room()})};
  }
  iovec held_part(std::size_t most) const {
    return {static_cast<char*>(memory_) + first_, std::min({most, capacity - first_, held_})};
  }
  void add(std::size_t bytes) { held_ += bytes; }
  void drop(std::size_t bytes) {
    held_ -= bytes;
    first_ = held_ ? (first_ + bytes) % capacity : 0;  // from the start, where the caches know it
  }

 private:
  void* memory_;
  std::size_t first_ = 0, held_ = 0;
};

/// One direction of one connection.
class direction {
 public:
  direction(int from, int to, pacer& p) : from_(from), to_(to), pacer_(p) {}

  /// False: a side closed the connection.
  bool run() {
    nanoseconds last_moved = now();
    while (!ended_ || !under_way_.empty() || ready_) {
      const nanoseconds time = now();
      for (; !under_way_.empty() && under_way_.front().due <= time; under_way_.pop_front())
        ready_ += under_way_.front().bytes;
      const step sent = ready_ ? send() : step::nothing;
      const step took = may_take(time) ? take() : step::nothing;
      if (sent == step::broken || took == step::broken) return false;
      if (sent == step::moved || took == step::moved) {
        last_moved = time;
      } else {
        wait(time, last_moved);
      }
    }
    ::shutdown(to_, SHUT_WR);
    return true;
  }

 private:
  enum class step { nothing, moved, broken };
  struct piece {
    nanoseconds due;
    std::size_t bytes;
  };

  bool may_take(nanoseconds time) const {
    return !ended_ && bytes_.room() >= largest_piece && pacer_.next_entry() <= time;
  }

  step take() {
    iovec part = bytes_.free_part(pacer_.piece());
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(timespec))];
    msghdr message{};
    message.msg_iov = &part, message.msg_iovlen = 1;
    message.msg_control = control, message.msg_controllen = sizeof control;
    const ssize_t got = ::recvmsg(from_, &message, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR ? step::nothing : step::broken;
    if (got == 0) return ended_ = true, step::moved;
    bytes_.add(static_cast<std::size_t>(got));
    under_way_.push_back(
        {pacer_.arrival(now() - age(message), static_cast<std::size_t>(got)), static_cast<std::size_t>(got)});
    return step::moved;
  }

  /// How long ago the kernel got the last of these bytes. Bytes that we left unread count as sent later.
  static nanoseconds age(msghdr& message) {
    const cmsghdr* c = CMSG_FIRSTHDR(&message);
    if (!c || c->cmsg_type != SCM_TIMESTAMPNS) return 0;
    timespec t{};
    std::memcpy(&t, CMSG_DATA(c), sizeof t);
    const nanoseconds past = clock_now(CLOCK_REALTIME) - (t.tv_sec * 1'000'000'000LL + t.tv_nsec);
    return std::clamp<nanoseconds>(past, 0, longest_delay);
  }

  step send() {
    const iovec part = bytes_.held_part(ready_);
    const ssize_t put = ::send(to_, part.iov_base, part.iov_len, MSG_DONTWAIT | MSG_NOSIGNAL);
    blocked_ = put < 0 && errno == EAGAIN;
    if (put < 0) return blocked_ || errno == EINTR ? step::nothing : step::broken;
    bytes_.drop(static_cast<std::size_t>(put));
    ready_ -= static_cast<std::size_t>(put);
    return step::moved;
  }

  void wait(nanoseconds time, nanoseconds last_moved) const {
    const bool take_more = !ended_ && bytes_.room() >= largest_piece;
    nanoseconds until = under_way_.empty() ? never : under_way_.front().due;
    // Read once, because other connections change it, and nothing would wake us.
    const nanoseconds entry = pacer_.next_entry();
    if (take_more && entry > time) until = std::min(until, entry);
    if (until < time + patience() || time < last_moved + patience()) return;
    pollfd both[2] = {{take_more && entry <= time ? from_ : -1, POLLIN, 0},
                      {ready_ && blocked_ ? to_ : -1, POLLOUT, 0}};
    timespec left{};
    if (until != never) {
      const nanoseconds sleep = std::max<nanoseconds>(0, until - patience() - time);
      left = {sleep / 1'000'000'000, sleep % 1'000'000'000};
    }
    ::ppoll(both, 2, until == never ? nullptr : &left, nullptr);
  }

  const int from_, to_;
  pacer& pacer_;
  ring bytes_;
  std::deque<piece> under_way_;
  std::size_t ready_ = 0;  ///< bytes that have arrived and are not sent yet
  bool ended_ = false, blocked_ = false;
};

void pass_on(std::shared_ptr<ends> both, int from, int to, pacer& p) {
  ::prctl(PR_SET_TIMERSLACK, 1);
  if (!direction(from, to, p).run()) both->cut();
}

}  // namespace

nanoseconds now() { return clock_now(CLOCK_MONOTONIC); }

nanoseconds pacer::arrival(nanoseconds came, std::size_t bytes) {
  if (shape_.bytes_per_nanosecond <= 0) return came + shape_.one_way;
  const auto takes = static_cast<nanoseconds>(static_cast<double>(bytes) / shape_.bytes_per_nanosecond);
  nanoseconds before = busy_until_.load(std::memory_order_relaxed), after;
  do {
    after = std::max(came, before) + takes;
  } while (!busy_until_.compare_exchange_weak(before, after, std::memory_order_relaxed));
  return after + shape_.one_way;
}

nanoseconds pacer::next_entry() const { return busy_until_.load(std::memory_order_relaxed) - entrance; }

std::size_t pacer::carried(nanoseconds in, std::size_t least) const {
  if (shape_.bytes_per_nanosecond <= 0) return largest_piece;
  return std::clamp(static_cast<std::size_t>(shape_.bytes_per_nanosecond * static_cast<double>(in)), least,
                    largest_piece);
}

std::size_t pacer::piece() const { return carried(200 * microsecond, 16 << 10); }
std::size_t pacer::packet() const { return carried(10 * microsecond, 4 << 10); }

int listen_at(const std::string& address) {
  const int s = tcp_socket(), on = 1;
  ::setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in at = parse(address);
  if (::bind(s, reinterpret_cast<const sockaddr*>(&at), sizeof at) < 0 || ::listen(s, 512) < 0)
    fail("listen");
  return s;
}

int connect_to(const std::string& address) {
  const int s = tcp_socket();
  const sockaddr_in at = parse(address);
  if (::connect(s, reinterpret_cast<const sockaddr*>(&at), sizeof at) < 0) return ::close(s), -1;
  prepare(s);
  return s;
}

std::string address_of(int socket) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size) < 0) fail("getsockname");
  char text[INET_ADDRSTRLEN] = "";
  ::inet_ntop(AF_INET, &at.sin_addr, text, sizeof text);
  return std::string(text) + ":" + std::to_string(ntohs(at.sin_port));
}

void serve(int listener, const std::string& server, const link_shape& shape) {
  pacer there(shape), back(shape);
  for (;;) {
    const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      fail("accept");
    }
    prepare(client);
    const int further = connect_to(server);
    if (further < 0) {
      std::perror("connect");
      ::close(client);
      continue;
    }
    auto both = std::make_shared<ends>(client, further);
    std::thread(pass_on, both, client, further, std::ref(there)).detach();
    std::thread(pass_on, both, further, client, std::ref(back)).detach();
  }
}

}  // namespace bench
