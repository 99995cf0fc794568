// Which back-end a call concerns: that of the first object that the program names in it. The call's new
// objects belong to it, and the call's questions go to it. Objects of two back-ends cannot meet in one call
// that leaves the process, because their contexts differ. Thread-local; exists during one call.
#pragma once

namespace outboard::frontend::opencl {

struct cell;
struct peer;

/// nullptr: no object has been named.
peer* home_of_call();

/// Until the end of the scope the calling thread's requests go to this back-end.
class at_home {
 public:
  explicit at_home(peer* home);
  /// Chooses the object's back-end; changes nothing if `named` is not an object.
  explicit at_home(const cell* named);
  ~at_home();
  at_home(const at_home&) = delete;
  at_home& operator=(const at_home&) = delete;

 private:
  peer* before_;
};

}  // namespace outboard::frontend::opencl
