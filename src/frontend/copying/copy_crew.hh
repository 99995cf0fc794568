// Threads that help the program's own thread to copy much memory, because one thread of a host does not fill
// a bus. They start at the first use, sleep between uses and end after a while without any. Signals are
// blocked in them. Any thread; a forked child has none of them and must not ask.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

namespace outboard::frontend {

class copy_crew {
 public:
  /// The one of this process; never destroyed, because its threads may outlive main().
  static copy_crew& instance();

  explicit copy_crew(int most) : most_(most) {}
  copy_crew(const copy_crew&) = delete;

  int most() const { return most_; }

  /// Four copying threads saturate what a host's memory gives (measured: 42-46 GB/s); the caller is one.
  static constexpr int copying = 3;

  /// While it lives, so many idle threads of the crew run `help`, once each. It must return soon when there
  /// is nothing left to do; the destructor waits for those that have begun. Without a free crew (another
  /// shift is on) nobody helps.
  class shift {
   public:
    shift(copy_crew& crew, const std::function<void()>& help, int wanted = copying);
    ~shift();
    shift(const shift&) = delete;

   private:
    copy_crew& crew_;
    bool ours_ = false;
  };

 private:
  void work();
  void start_missing();

  const int most_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable begun_, ended_;
  const std::function<void()>* help_ = nullptr;
  unsigned long number_ = 0;  ///< of the shift
  int threads_ = 0, busy_ = 0;
  int places_ = 0;  ///< left in the shift
};

}  // namespace outboard::frontend
