// What sensors of the server's devices say, on the program's clock: asked of the server for as long as the
// program's profiler wants it. One thread at a time; it may wait for as long as the session does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/cuda/board_sample.hh"
#include "frontend/profile/profile_clock.hh"
#include "frontend/session.hh"
#include "marshal/profile_bodies.hh"

namespace outboard::frontend::cupti {

class board_feed {
 public:
  /// From now on they are sampled. Returns why not; empty: they are. The session outlives this.
  std::string start(session& server);
  bool on() const { return server_ != nullptr; }
  /// What has come and was not fetched is lost.
  void stop();
  /// What has come since. `at` is of std::chrono::steady_clock, nanoseconds.
  std::vector<api::board_sample> fetch();
  /// That the server had no room for, since the last question.
  std::uint64_t take_dropped();

 private:
  std::optional<marshal::profile_samples_reply> ask(session& server, bool on);

  session* server_ = nullptr;
  profile_clock clock_;
  std::uint64_t dropped_ = 0;
  std::vector<std::byte> request_, reply_;
};

}  // namespace outboard::frontend::cupti
