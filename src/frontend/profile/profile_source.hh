// Asks the server for what its device has recorded, and passes it on. One thread at a time; it may wait for
// as long as the session does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "frontend/profile/profile_services.hh"
#include "frontend/session.hh"
#include "marshal/profile_bodies.hh"

namespace outboard::frontend {

/// Takes what is fetched. Called by the thread that fetches, one at a time.
class profile_receiver {
 public:
  virtual void begin_fetch() = 0;
  /// The question left at `asked`, the answer was here at `answered`: nanoseconds of the steady clock.
  virtual void add(marshal::profile_take_reply&& reply, std::int64_t asked, std::int64_t answered) = 0;
  virtual void end_fetch() = 0;

 protected:
  ~profile_receiver() = default;
};

class profile_source {
 public:
  /// The session outlives this.
  profile_source(session& server, profile_services services) : server_(server), services_(services) {}

  /// From now on the device records. Why it does not, or nothing.
  std::string start();
  /// No more; what was recorded can still be fetched.
  void stop();
  /// All that the server has. `all`: what the device still keeps to itself, too.
  void fetch(bool all, profile_receiver& into);

 private:
  bool take(bool all, profile_receiver& into, bool& more);
  bool ask(std::uint32_t what);

  session& server_;
  const profile_services services_;
  std::vector<std::byte> request_, reply_;
};

}  // namespace outboard::frontend
