// For tests: waits until a thread sleeps in the kernel, which shows that it has come to where it waits. Any
// thread.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace outboard {

/// True once the thread `task` (a thread's number, as gettid() says, of any process) sleeps. False if it has
/// ended, or does not sleep within a time that only a machine that stands still needs.
inline bool falls_asleep(pid_t task) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  do {
    std::string text;
    std::getline(std::ifstream("/proc/" + std::to_string(task) + "/stat"), text);
    // proc(5): the state stands behind the name, which is in parentheses and may hold any byte.
    const std::size_t name_end = text.rfind(')');
    const char state = name_end + 2 < text.size() ? text[name_end + 2] : 'X';
    if (state == 'S') return true;
    if (state == 'X' || state == 'Z') return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

/// A thread that another waits to see asleep.
class seen_thread {
 public:
  /// Called by the thread, just before it does what puts it to sleep.
  void here() {
    task_.store(::gettid());
    task_.notify_all();
  }
  /// True once the thread sleeps after here(); false as above.
  bool falls_asleep() const {
    task_.wait(0);
    return outboard::falls_asleep(task_.load());
  }

 private:
  std::atomic<pid_t> task_{0};
};

}  // namespace outboard
