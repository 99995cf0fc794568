#include "backend/session/profile_requests.hh"

#include <utility>
#include <vector>

#include "marshal/profile_bodies.hh"

namespace outboard::backend {
namespace {

constexpr const char* no_recorder = "the server's device tells nothing of its work";

}  // namespace

outcome start_profile(request_at_hand& request, device::work_recorder* recorder) {
  if (!request.body.finished()) return outcome::malformed();
  request.give_up_turn();  // a library may have to be loaded
  marshal::profile_start_reply reply;
  if (!recorder) {
    reply.refusal = no_recorder;
  } else if (const status started = recorder->start(); !started.ok()) {
    reply.refusal = started.error().message;
  }
  marshal::put_body(request.reply, reply);
  return outcome::answer(0);
}

outcome stop_profile(request_at_hand& request, device::work_recorder* recorder) {
  if (!request.body.finished()) return outcome::malformed();
  request.give_up_turn();
  if (recorder) recorder->stop();
  return outcome::answer(0);
}

outcome take_profile(request_at_hand& request, device::work_recorder* recorder) {
  marshal::profile_take_body body;
  if (!take_all(request, body)) return outcome::malformed();
  request.give_up_turn();
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
  marshal::put_body(request.reply, reply);
  return outcome::answer(0);
}

outcome sample_boards(request_at_hand& request, device::work_recorder* recorder, std::uint32_t devices) {
  marshal::profile_samples_body body;
  if (!take_all(request, body)) return outcome::malformed();
  request.give_up_turn();
  marshal::profile_samples_reply reply;
  if (!recorder) {
    reply.refusal = no_recorder;
  } else {
    reply.came = recorder->now();
    if (const status changed = recorder->sample(body.on); !changed.ok())
      reply.refusal = changed.error().message;
    device::sampled_boards done = recorder->take_samples();
    std::erase_if(done.samples, [=](const api::board_sample& s) { return s.device >= devices; });
    reply.samples = std::move(done.samples);
    reply.dropped = done.dropped;
    reply.left = recorder->now();
  }
  marshal::put_body(request.reply, reply);
  return outcome::answer(0);
}

}  // namespace outboard::backend
