#include "frontend/cuda/code/image_recalls.hh"

#include <algorithm>

namespace outboard::frontend {
namespace {

/// Links change: a laptop moves, another program fills the link.
constexpr std::chrono::seconds valid{30};
/// A link that seems fast may have been measured while something else held up the first answer.
constexpr std::chrono::seconds valid_when_fast{5};
constexpr double fast = 2;  // nanoseconds a byte: 4 Gb/s

/// The fastest is what it costs; what takes longer was interrupted, or the other end is busy indeed.
double towards(double known, double now) { return now < known ? now : known + (now - known) / 16; }

}  // namespace

bool image_recalls::knows_link(clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return measured_ && now - measured_at_ < (line_ < fast ? valid_when_fast : valid);
}

void image_recalls::measured(clock::duration empty, std::size_t bytes, clock::duration behind,
                             clock::time_point now) {
  const std::lock_guard lock(mutex_);
  measured_ = true;
  measured_at_ = now;
  round_trip_ = empty;
  server_ = 0;
  line_ = std::max(0.0, nanoseconds(behind - empty).count()) / static_cast<double>(bytes);
}

void image_recalls::hashed(std::size_t bytes, clock::duration took) {
  const std::lock_guard lock(mutex_);
  const double now = nanoseconds(took).count() / static_cast<double>(bytes);
  hash_ = hash_ == 0 ? now : towards(hash_, now);
}

void image_recalls::found(std::size_t bytes, clock::duration took) {
  const std::lock_guard lock(mutex_);
  const double now = std::max(0.0, (nanoseconds(took) - round_trip_).count()) / static_cast<double>(bytes);
  server_ = towards(server_ == 0 ? hash_ : server_, now);
}

bool image_recalls::pays(std::size_t size) const {
  const std::lock_guard lock(mutex_);
  const auto bytes = static_cast<double>(size);
  const double asking = bytes * (hash_ + (server_ == 0 ? hash_ : server_)) + round_trip_.count();
  return 2 * asking < bytes * line_;
}

}  // namespace outboard::frontend
