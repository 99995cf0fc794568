// What a session speaks: carries out requests, says what the welcome holds, and answers. Lanes, the turn,
// frames and connections are the session's own whatever it speaks. The session owns it; called with the turn,
// but for what says otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/session/data_connections.hh"
#include "backend/session/data_piece.hh"
#include "backend/session/handle_tables.hh"
#include "backend/session/lane.hh"
#include "backend/session/request_at_hand.hh"
#include "backend/session/session_image.hh"
#include "base/result.hh"

namespace outboard::backend {

/// A stream of the client's.
struct known_stream {
  std::uint64_t id = 0;    ///< the client's; 0: none
  void* native = nullptr;  ///< the device's
};

class session_api {
 public:
  virtual ~session_api() = default;

  /// The session begins. The welcome's content, or why there is no session.
  virtual result<std::vector<std::byte>> begin() = 0;
  /// What another worker may do before the session comes to it, made while the session goes on.
  class preparation {
   public:
    virtual ~preparation() = default;
    /// For worker_api::load_ahead() there. Any thread, once, without the turn.
    virtual std::vector<std::byte> encode() = 0;
  };
  /// An error says why the session cannot leave.
  virtual result<std::unique_ptr<preparation>> prepare() {
    return failure("sessions of this API stay with their worker");
  }
  /// The session is to leave its worker, and no request is under way. Made when that begins.
  class settling {
   public:
    virtual ~settling() = default;
    /// Has the device done all that it was asked until then, and is everything sent that came of it? Looks,
    /// and does not wait.
    virtual bool is_over() = 0;
  };
  /// An error says why the session cannot leave.
  virtual result<std::unique_ptr<settling>> settle() {
    return failure("sessions of this API stay with their worker");
  }
  /// Once that is over: all that another worker needs to go on. An error, and nothing has changed: something
  /// of the session cannot leave.
  virtual status save(session_image& /*into*/) {
    return failure("sessions of this API stay with their worker");
  }
  /// In place of begin(): what save() has put into the image behind `from`.
  virtual status restore(session_image& /*image*/, wire::reader& /*from*/) {
    return failure("sessions of this API stay with their worker");
  }

  /// The session is over: nobody may wait for the client any more. Any thread.
  virtual void stop() {}
  /// The lanes have ended, or are `stuck` inside calls of the device, which go on. Unless they are, threads
  /// of its own end here: what they use may go before it does. The main thread, without the turn.
  virtual void end(bool /*stuck*/) {}
  /// Commands may go on in the device when the session is over, and use memory of the session.
  virtual bool leaves_commands() const { return false; }

  virtual std::unique_ptr<lane> make_lane(std::uint32_t number) { return std::make_unique<lane>(number); }
  /// The lane's thread has ended, and the lane is about to go.
  virtual void lane_ended(lane&) {}

  /// Its objects. With the turn.
  virtual handle_tables& objects() = 0;
  virtual outcome carry_out(request_at_hand& request) = 0;
  /// Says to the client what became of a request of `asking` that `own` has carried out: by
  /// session_core::send_reply(), unless it is a post. Perhaps without the turn.
  virtual void answer(lane& own, lane& asking, const wire::frame_header& request, const outcome& what) = 0;
  /// The request is over, whatever became of it. Any lane's thread.
  virtual void request_over() {}

  /// What the bytes of large copies pass through. Any thread.
  virtual piece_memory& pieces() = 0;
  /// Sends what is complete of the copies that nobody waits for. Any thread.
  virtual data_connections::look look_after_copies() { return data_connections::look::nothing; }

  /// What must get through while the request that has the turn is inside a call of the device: it may wait
  /// for a stream that waits for the client.
  enum class ahead : std::uint8_t {
    nothing,
    words,    ///< that the client writes in memory of both sides
    answers,  ///< to questions put to the client, and words
  };
  /// Any thread.
  virtual ahead reads_ahead() const { return ahead::nothing; }
  /// Carries out a request that has no place among those of its lane, but for the time at which it was sent.
  /// False: it is none. By the thread that reads, with the turn or without.
  virtual bool execute_ahead(const frame&) { return false; }
  /// The client's answer to a question with this number. False: to none that was put. As execute_ahead().
  virtual bool answered(std::uint64_t, std::span<const std::byte>) { return false; }

  /// Does the request do the same on whichever thread of the worker it is carried out?
  virtual bool any_thread_may(const frame&) const { return false; }
  /// The stream of a posted launch that its lane's thread may make beside the thread that has the turn,
  /// because it concerns nothing but this stream, which is known; else none.
  virtual known_stream stream_aside(const frame&) { return {}; }
  /// The launch is about to be left to its lane's thread.
  virtual void goes_aside(const frame&, const known_stream&) {}
  /// Makes such a launch. False: malformed. The lane's thread, without the turn.
  virtual bool launch_aside(lane&, const frame&) { return false; }
};

/// Makes what the session speaks, for this session.
using session_maker = std::function<std::unique_ptr<session_api>(session_core&)>;

}  // namespace outboard::backend
