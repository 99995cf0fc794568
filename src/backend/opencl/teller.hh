// Carries news out of the platform's callbacks, because they may neither call the platform (PoCL's hold the
// locks of other commands' events) nor wait for a connection. It has one thread, which starts with the first
// news, and sends news in the order of arrival. Any thread, also in callbacks.
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
    std::uint64_t number = 0;  ///< of the client's callback; 0: none
    std::int32_t status = 0;
  };

  /// `tell` runs on the teller's thread.
  explicit teller(std::function<void(const news&)> tell) : tell_(std::move(tell)) {}
  ~teller() { end(); }
  teller(const teller&) = delete;
  teller& operator=(const teller&) = delete;

  /// After end() the news is lost.
  void pass_on(const news& what);
  /// Once this has returned, nothing more is sent.
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
