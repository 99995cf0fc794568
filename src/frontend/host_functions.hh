// Functions of the program that the server asks for: host functions, stream callbacks, destructors of user
// objects. The program's pointers never travel: the server knows them by number. All run on one thread, which
// exists from the first such function on; CUDA calls from there are not permitted, as with the real driver.
// Owned by the process state; any thread may add.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "frontend/session.hh"

namespace outboard::frontend {

class host_functions {
 public:
  using function = std::function<void(std::int32_t status)>;

  /// The number by which the server asks for it, until forget().
  std::uint64_t add(session& from, function run);
  void forget(std::uint64_t id);
  /// What is done on the functions' thread before and after each of them: bytes that they may read come
  /// first, those that they wrote go before the work behind them. Set before the first add().
  void surround(std::function<void()> before, std::function<void()> after);

  /// The process ends: waits a moment for the thread, unless it is inside the program's code.
  void end();
  /// In a forked child there is no such thread.
  void forked();

 private:
  void work(session& from);
  void run(const callback_order& order);

  std::mutex mutex_;  // guards what follows
  std::function<void()> before_, after_;
  std::uint64_t last_ = 0;
  std::unordered_map<std::uint64_t, std::shared_ptr<const function>> functions_;
  bool started_ = false;
  std::atomic<bool> gone_{true};
  std::atomic<bool> in_program_{false};
};

}  // namespace outboard::frontend
