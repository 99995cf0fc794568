// What the device prints in this process: the driver writes printf of kernels to descriptor 1 and failed
// assertions to descriptor 2 when work is waited for. Both become pipes that a thread of ours empties, so
// that the driver never waits for a reader; the texts are kept until a reply takes them along, and with them
// what we have to say of work that failed. Made once, by the worker, before the device is opened; any thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

class device_output {
 public:
  /// Replaces the process's stdout and stderr.
  static result<std::unique_ptr<device_output>> take_over();
  ~device_output();
  device_output(const device_output&) = delete;
  device_output& operator=(const device_output&) = delete;

  /// A line for the client's log, which goes to it as wire::output_log. More than a few that nobody has taken
  /// yet are left out.
  void tell(std::string_view line);

  /// Was something written that nobody has taken yet, as far as the thread has seen?
  bool kept() const { return kept_.load(std::memory_order_relaxed); }

  /// Everything that was written before this call, in order; `send` gets it in pieces below a frame, with
  /// what it is (wire/output.hh).
  void flush(const std::function<void(std::uint8_t what, std::string_view text)>& send);

 private:
  struct source {
    int descriptor = 0;         ///< that number is also what it is on the wire
    unique_fd reading, before;  ///< `before`: what the descriptor was
    std::string kept;
  };

  device_output() = default;
  void drain(source& from);
  void work();

  std::array<source, 2> sources_;
  std::vector<std::string> lines_;
  unique_fd stop_;
  std::mutex mutex_;  // guards what is kept, and the order of sending
  std::atomic<bool> kept_{false};
  std::thread thread_;
};

}  // namespace outboard::backend
