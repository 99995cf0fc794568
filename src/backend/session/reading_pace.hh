// When the thread that reads a session's requests naps instead of looking all the time. A program that posts
// for milliseconds and asks nothing (a training step) is not slower for it: the device has work, or gets it
// in small heaps instead of one by one. But it may wait by other ways than asking (memory that kernels
// write), and then each nap is a wait: where posts come half as fast with naps as without, there are none for
// a while. Of the session, with its turn; reads no clock but the one it is given.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace outboard::backend {

class reading_pace {
 public:
  using clock = std::chrono::steady_clock;

  /// How long a nap is: a timer of the system costs a few us, a look 0.1.
  static constexpr std::chrono::microseconds nap{50};

  /// A request was read, of which the client `waits` for the answer, or not.
  template <class Now>
  void read(bool waits, Now&& now) {
    if (waits) {
      posts_ = 0, since_ = {}, napping_ = false;
    } else if (++posts_ % window == 0) {
      look(now());
    }
  }
  bool napping() const { return napping_; }

 private:
  static constexpr unsigned window = 32;  ///< posts
  /// Nothing was asked for so long: a nap more before the next answer is lost in that.
  static constexpr std::chrono::milliseconds quiet{4};
  /// More rarely posts are better slept for than napped for.
  static constexpr std::chrono::microseconds rare{100};
  static constexpr std::chrono::milliseconds least_pause{50}, most_pause{2000};

  void look(clock::time_point now) {
    const auto took = now - std::exchange(began_, now);
    if (since_ == clock::time_point{}) {
      since_ = now;
      return;
    }
    auto& mean = napping_ ? with_ : without_;
    mean = mean.count() == 0 ? took : mean + (std::min(took, 4 * mean) - mean) / 16;
    if (napping_) {
      if (with_ <= 2 * without_) return;
      napping_ = false;
      pause_ = now - napping_since_ > 4 * pause_ ? clock::duration(least_pause)
                                                 : std::min<clock::duration>(2 * pause_, most_pause);
      not_before_ = now + pause_;
      return;
    }
    if (now - since_ < quiet || now < not_before_ || without_ > window * rare) return;
    with_ = without_;
    napping_since_ = now;
    napping_ = true;
  }

  unsigned posts_ = 0;
  bool napping_ = false;
  clock::time_point since_{};  ///< the last answer, nearly
  clock::time_point began_{}, napping_since_{}, not_before_{};
  clock::duration with_{0}, without_{0};  ///< what so many posts take, lately
  clock::duration pause_ = least_pause;
};

}  // namespace outboard::backend
