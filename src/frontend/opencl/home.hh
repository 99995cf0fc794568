// The home of a call: the back-end of the first object that the program names in it. What the call makes
// belongs there, and its questions go there. Objects of two back-ends cannot meet in a call that leaves the
// process, because their contexts differ. Thread-local; for the time of one call.
#pragma once

namespace outboard::frontend::opencl {

struct cell;
struct peer;

/// nullptr: no object has been named.
peer* home_of_call();

/// From here to the end of the scope the calling thread's requests go to this back-end.
class at_home {
 public:
  explicit at_home(peer* home);
  /// The back-end of the object; without one nothing changes.
  explicit at_home(const cell* named);
  ~at_home();
  at_home(const at_home&) = delete;
  at_home& operator=(const at_home&) = delete;

 private:
  peer* before_;
};

}  // namespace outboard::frontend::opencl
