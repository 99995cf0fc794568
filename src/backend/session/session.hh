// One session in a worker: everything that a client process asks, from the welcome to the end of its
// connection. serve_session() takes the connection and returns when the session is over; called once in a
// worker's life, from its main thread. It starts a thread for each lane of the client and joins them before
// it returns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "backend/session/session_api.hh"
#include "backend/worker/activity.hh"
#include "backend/worker/broker_link.hh"
#include "backend/worker/device_output.hh"
#include "base/configuration/config.hh"
#include "transport/transport.hh"
#include "wire/hello.hh"
#include "wire/token_proof.hh"

namespace outboard::backend {

class account_share;
class predecessor;
class resumption;
class successor;

struct session_request {
  std::unique_ptr<transport::connection> connection;
  wire::hello hello;
  std::uint64_t id = 0;
  wire::seal seal = {};             ///< with which the welcome is made
  session_maker make_api = {};      ///< what the session speaks
  device_output* output = nullptr;  ///< what the device prints in this process; null: nobody listens
  broker_link* broker = nullptr;    ///< null: nothing can be shared with other sessions
  /// Continues a descriptor by the transport of that name; empty: there are no data connections.
  std::function<result<std::unique_ptr<transport::connection>>(const std::string& scheme, unique_fd)> attach =
      {};
  resumption* resuming = nullptr;       ///< keeps the session's streams; null: it cannot be resumed
  successor* next = nullptr;            ///< another worker may go on with it; null: none can
  predecessor* before = nullptr;        ///< whose session this goes on with; null: it begins
  std::function<void()> on_begin = {};  ///< the client is this worker's from now on; needs `before`
  shape_settings shape = {};            ///< what the client sees of the devices
  account_share* account = nullptr;     ///< of its identity's memory; null: that has no limit. Outlives it
  activity_page* activity = nullptr;    ///< where the session tells what it holds; null: nowhere
  bool held_by_page = false;            ///< requests wait while the page says `held`; needs `activity`
  bool lanes_always_aside =
      false;  ///< for tests: threads launch beside each other where cores are scarce, too
};

struct session_end {
  bool orderly = false;  ///< by a goodbye; else `why` is one line for the log
  std::string why;
  bool stuck = false;      ///< threads are left inside the driver: call _exit()
  bool handed_on = false;  ///< another worker goes on with it: as `stuck`, and nothing is said of its end
  /// What commands of the device may still use: the session itself. Goes before what the request points to.
  std::shared_ptr<const void> left = {};
};

session_end serve_session(session_request request);

}  // namespace outboard::backend
