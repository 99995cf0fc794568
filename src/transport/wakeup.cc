#include "transport/wakeup.hh"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/errno_text.hh"

namespace outboard::transport {

int poll_until(std::span<pollfd> fds, deadline until) {
  for (;;) {
    timespec left{};
    // Compared before subtracting: a deadline of min() would overflow.
    if (deadline now = clock::now(); until != no_deadline && until > now) {
      auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(until - now).count();
      left = {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
    }
    int ready = ppoll(fds.data(), fds.size(), until == no_deadline ? nullptr : &left, nullptr);
    if (ready >= 0 || errno != EINTR) return ready;
  }
}

unique_fd out_of_the_way(unique_fd fd) {
  // Not higher than needed: the kernel's table of descriptors grows up to the number.
  constexpr rlim_t enough = 4096;
  rlimit most{};
  if (!fd || ::getrlimit(RLIMIT_NOFILE, &most) != 0) return fd;
  const rlim_t from = std::min(most.rlim_cur, enough) / 4 * 3;
  unique_fd moved(::fcntl(fd.get(), F_DUPFD_CLOEXEC, static_cast<int>(from)));
  return moved ? std::move(moved) : std::move(fd);
}

result<unique_fd> wakeup::make_event() {
  unique_fd event(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event)
    return outboard::error{action::retry, "cannot make a descriptor for waiting: " + errno_text(errno)};
  return out_of_the_way(std::move(event));
}

void wakeup::raise() {
  if (raised_.exchange(true, std::memory_order_seq_cst))
    return;  // the thread that raised it wakes the sleeper
  if (!sleeping_.load(std::memory_order_seq_cst)) return;
  std::uint64_t one = 1;
  while (::write(event_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
}

void wakeup::drain() {
  std::uint64_t count;
  while (::read(event_.get(), &count, sizeof count) < 0 && errno == EINTR) {
  }
}

io wakeup::wait(int fd, short events, deadline until) {
  for (;;) {
    sleeping_.store(true, std::memory_order_seq_cst);
    bool early = raised_.load(std::memory_order_seq_cst);
    pollfd fds[2] = {{fd, events, 0}, {event_.get(), POLLIN, 0}};
    int ready = poll_until(fds, early ? deadline::min() : until);
    sleeping_.store(false, std::memory_order_relaxed);
    if (ready < 0) return io::broken;
    if (fds[1].revents != 0) drain();
    if (fds[0].revents != 0) return io::done;
    if (raised_.exchange(false, std::memory_order_seq_cst)) return io::interrupted;
    if (ready == 0) return io::timed_out;
    // Only the event was ready, left by a raise() that an earlier wait has answered already.
  }
}

}  // namespace outboard::transport
