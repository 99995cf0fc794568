// What the session of a worker speaks, as its process sees it: opened before there is a session. Of the main
// thread.
#pragma once

#include <functional>
#include <memory>

#include "backend/daemon/control.hh"
#include "backend/disk/image_terms.hh"
#include "backend/session/session_api.hh"
#include "base/result.hh"
#include "wire/hello.hh"

namespace outboard::backend {

class device_output;

class worker_api {
 public:
  virtual ~worker_api() = default;

  /// What the daemon is told of it at its start.
  virtual result<facts_message> facts() { return failure("nothing is known of it without a session"); }
  /// Does what a session would have to wait for. `measured`: what that took is asked for.
  virtual ready_message get_ready(bool /*measured*/) { return {}; }
  /// For a session that another worker has and that is to come here: what session_api::prepare() gave there.
  virtual status load_ahead(std::span<const std::byte> /*preparation*/) {
    return failure("sessions of this API stay with their worker");
  }
  /// For the session with this hello. Outlives it.
  virtual session_maker speak(const wire::hello& hello, const image_terms& images) = 0;
};

/// `output`: what hears what the device says; may be null, and outlives what is opened.
using api_opener = std::function<result<std::unique_ptr<worker_api>>(device_output* output)>;

/// The reason of its error: there is no device.
inline constexpr int no_device = 1;

}  // namespace outboard::backend
