// Threads that help the program's own thread to copy much memory: one thread of a host cannot saturate a bus.
// They start at the first use, sleep between uses, and end after a while without any. Signals are blocked in
// them. Any thread; a forked child has none of them and must not ask.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>

namespace outboard::frontend {

class copy_crew {
 public:
  /// The process's only crew. It is never destroyed, because its threads may outlive main().
  static copy_crew& instance();

  explicit copy_crew(int most) : most_(most) {}
  copy_crew(const copy_crew&) = delete;

  int most() const { return most_; }

  /// Four copying threads saturate a host's memory (measured: 42-46 GB/s); the caller is one of them.
  static constexpr int copying = 3;

  /// While this object lives, up to so many idle threads of the crew run `help`, once each. `help` must
  /// return soon when there is nothing left to do; the destructor waits for those that have begun. If the
  /// crew is busy with another shift, nobody helps.
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
  unsigned long number_ = 0;  ///< number of the current shift
  int threads_ = 0, busy_ = 0;
  int places_ = 0;  ///< free places in the current shift
};

}  // namespace outboard::frontend
