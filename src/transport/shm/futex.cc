#include "transport/shm/futex.hh"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace outboard::transport::shm {

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, deadline until) {
  const deadline now = clock::now();
  if (until <= now) return;
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(until - now).count();
  const timespec left{static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, value, &left, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  if (word.exchange(0, std::memory_order_seq_cst) == 0) return;
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace outboard::transport::shm
