// The calls that the program's threads have made and that are not written yet: a list for each lane, whose
// lock no other lane takes, so threads that call at once do not wait for each other. Owned by the profile; a
// lane notes its own calls, any thread may take.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "frontend/lane.hh"
#include "frontend/profile/profile_events.hh"

namespace outboard::frontend {

struct profiled_lane;

class profile_calls {
 public:
  profile_calls();
  ~profile_calls();

  /// By the lane's thread. `begin`, `end`: nanoseconds on one clock.
  void note(lane& own, std::string_view name, answered how, std::int64_t begin, std::int64_t end);
  /// The lane ends. By its thread.
  void end(lane& own);

  /// What was noted since the last time, by the times at which the calls began.
  std::vector<profile_events::call> take();
  /// Lanes that may note calls, or have noted some that are not taken. For tests.
  std::size_t lanes() const;

 private:
  profiled_lane& of(lane& own);

  mutable std::mutex mutex_;  // guards the list of lists, not what is in them; taken before theirs
  std::vector<std::unique_ptr<profiled_lane>> lanes_;
};

}  // namespace outboard::frontend
