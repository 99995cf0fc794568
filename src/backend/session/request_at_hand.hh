// One request being carried out, as the code of an API sees it. Lives on the lane's thread for the time of
// the request, which has the session's turn (turn.hh) until it gives it up for a wait.
#pragma once

#include <cstdint>
#include <memory_resource>

#include "marshal/fields.hh"
#include "wire/cursor.hh"
#include "wire/frame.hh"

namespace outboard::backend {

class session_core;
class lane;
struct frame;

/// What became of a request: the API's answer, or a peer that does not follow the protocol.
struct [[nodiscard]] outcome {
  bool well_formed = true;
  std::int32_t code = 0;
  bool keeps_outputs = false;  ///< the outputs travel with an error, too
  template <class Code>
  static outcome answer(Code code) {
    return {true, static_cast<std::int32_t>(code)};
  }
  static outcome malformed() { return {false, -1}; }
};

struct request_at_hand {
  session_core& core;
  lane& own;  ///< whose thread runs this
  frame& asked;
  const wire::frame_header& header;  ///< of `asked`
  wire::reader body;
  wire::writer& reply;  ///< the outputs; sent only with a call, behind the result code
  std::pmr::memory_resource& scratch;

  /// Lets other lanes go on: to be called once, after everything needed was decoded and resolved, before a
  /// call of the device that may block on its work. A post keeps it: what comes later must find it done.
  void give_up_turn();
};

/// Takes the whole body of a request, as the API keeps it; false: malformed.
template <class Call, class Body>
requires requires(Call& c) { c.body.finished(); }
bool take_all(Call& c, Body& body) {
  body = marshal::take_body<Body>(c.body);
  return c.body.finished();
}

}  // namespace outboard::backend
