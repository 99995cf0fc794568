// One thread of the client, in its worker: the thread that stands for it, and the request that this thread
// has at hand. The session owns the lanes; an API that keeps more with each derives from this class
// (session_api::make_lane()). Of the lane's own thread, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "backend/session/frame.hh"
#include "backend/session/side_launches.hh"
#include "backend/session/turn.hh"

namespace outboard::backend {

class lane : public contender {
 public:
  explicit lane(std::uint32_t number) : id(number) {}
  virtual ~lane() = default;

  const std::uint32_t id;
  frame inbox;             ///< handed over with the turn
  bool has_frame = false;  ///< under the turn
  bool finished = false;   ///< the client's thread ended; under the turn
  std::vector<std::byte> reply;
  std::vector<std::byte> before_reply;  ///< frames that leave with it
  side_launches side;
  bool stepped_aside = false;        ///< of its thread: it has left the reading to the stand-by
  bool gave_up_turn = false;         ///< during the request at hand
  bool keeps_turn = false;           ///< the request at hand must not give it up
  std::atomic<bool> answered{true};  ///< no call is under way: the client's thread may ask again
  std::thread thread;
  std::atomic<bool> gone{false};  ///< `thread` is about to end and touches nothing any more
};

}  // namespace outboard::backend
