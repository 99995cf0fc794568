// Carries news out of the platform's callbacks: in them nothing of the platform may be called (PoCL's hold
// the locks of other commands' events), nor may they be held up by a connection. One thread, begun with the
// first news; what comes first is told first. Any thread, callbacks too.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace outboard::backend::opencl {

class teller {
 public:
  struct news {
    std::uint64_t number = 0;  ///< of the client's callback; 0: none, there may be something to send
    std::int32_t status = 0;
  };

  /// `tell` runs on the teller's thread.
  explicit teller(std::function<void(const news&)> tell) : tell_(std::move(tell)) {}
  ~teller() { end(); }
  teller(const teller&) = delete;
  teller& operator=(const teller&) = delete;

  /// After end() it is lost.
  void pass_on(const news& what);
  /// Nothing is told any more when it returns.
  void end();

 private:
  void run();

  const std::function<void(const news&)> tell_;
  std::mutex mutex_;  // guards what follows; not held while telling
  std::condition_variable came_;
  std::deque<news> waiting_;
  std::thread thread_;
  bool ended_ = false;
};

}  // namespace outboard::backend::opencl
