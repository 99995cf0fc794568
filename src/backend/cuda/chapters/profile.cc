// What the device did, told to a program that is profiled: its own worker's work, and nobody else's.
#include "backend/cuda/ends.hh"
#include "backend/session/session_core.hh"
#include "marshal/profile_bodies.hh"

namespace outboard::backend {

outcome ends::profile_start(call& c) {
  if (!c.body.finished()) return outcome::malformed();
  device::work_recorder* const recorder = c.session.recorder();
  c.give_up_turn();  // a library may have to be loaded
  marshal::profile_start_reply reply;
  if (!recorder) {
    reply.refusal = "the server's device tells nothing of its work";
  } else if (const status started = recorder->start(); !started.ok()) {
    reply.refusal = started.error().message;
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(CUDA_SUCCESS);
}

outcome ends::profile_stop(call& c) {
  if (!c.body.finished()) return outcome::malformed();
  device::work_recorder* const recorder = c.session.recorder();
  c.give_up_turn();
  if (recorder) recorder->stop();
  return outcome::answer(CUDA_SUCCESS);
}

outcome ends::profile_take(call& c) {
  marshal::profile_take_body body;
  if (!take_all(c, body)) return outcome::malformed();
  device::work_recorder* const recorder = c.session.recorder();
  c.give_up_turn();
  marshal::profile_take_reply reply;
  if (recorder) {
    reply.came = recorder->now();
    device::recorded_work done = recorder->take(body.all);
    reply.names = std::move(done.names);
    reply.records = std::move(done.records);
    reply.dropped = done.dropped;
    reply.more = done.more;
    reply.left = recorder->now();
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(CUDA_SUCCESS);
}

}  // namespace outboard::backend
