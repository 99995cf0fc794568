// Decides whether to ask the server for a module image before sending it. Asking costs a hash on both ends
// and a round trip; sending costs the time of the link, which is measured once per connection and again when
// that is long ago. Has no clock of its own. Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>

#include "marshal/cuda/image_name.hh"

namespace outboard::frontend {

class image_recalls {
 public:
  using clock = std::chrono::steady_clock;

  explicit image_recalls(const marshal::image_challenge& challenge) : challenge_(challenge) {}
  const marshal::image_challenge& challenge() const { return challenge_; }

  std::mutex measuring;  ///< held while one measures: two at once would see half of the line

  /// Is the line's pace known, and not from long ago?
  bool knows_line(clock::time_point now) const;
  /// A call took `empty`, and behind that many bytes `behind`.
  void measured(clock::duration empty, std::size_t bytes, clock::duration behind, clock::time_point now);
  void hashed(std::size_t bytes, clock::duration took);
  /// The server had an image and says so after that time.
  void found(std::size_t bytes, clock::duration took);

  /// Is asking cheaper than sending, by half at least? (It may be in vain.) What was not measured yet costs
  /// nothing.
  bool pays(std::size_t size) const;

 private:
  using nanoseconds = std::chrono::duration<double, std::nano>;

  const marshal::image_challenge challenge_;
  mutable std::mutex mutex_;
  clock::time_point measured_at_{};
  bool measured_ = false;
  nanoseconds round_trip_{0};
  double line_ = 0, hash_ = 0, server_ = 0;  // nanoseconds a byte; the server's is as ours until it is known
};

}  // namespace outboard::frontend
