// What a session keeps for one thread of the program: what came for it, what it answers, and the thread of
// the worker that stands for it. The session owns it; with the turn, but for what says otherwise. An API
// that keeps more for a thread derives from it (session_api::make_lane()).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "backend/session/side_launches.hh"
#include "backend/session/turn.hh"

namespace outboard::backend {

class lane : public contender {
 public:
  explicit lane(std::uint32_t number) : id(number) {}
  virtual ~lane() = default;
  const std::uint32_t id;
  frame inbox;                          ///< handed over with the turn
  bool has_frame = false;               ///< under the turn
  bool finished = false;                ///< the client's thread ended; under the turn
  std::vector<std::byte> reply;         ///< of its thread, as all up to `answered`
  std::vector<std::byte> before_reply;  ///< frames that leave with it
  side_launches side;
  bool stepped_aside = false;        ///< it has left the reading to the stand-by
  bool gave_up_turn = false;         ///< during the request at hand
  bool replaying = false;            ///< carries out records: keeps the turn through all of them
  std::atomic<bool> answered{true};  ///< no call is under way: the client's thread may ask again
  std::thread thread;
  std::atomic<bool> gone{false};  ///< `thread` is about to end and touches nothing any more
};

}  // namespace outboard::backend
