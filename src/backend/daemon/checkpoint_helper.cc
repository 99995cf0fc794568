#include "backend/daemon/checkpoint_helper.hh"

#include <fcntl.h>
#include <sys/prctl.h>

#include <cstring>
#include <vector>

#include "backend/cuda/driver_call.hh"
#include "backend/daemon/control.hh"
#include "backend/daemon/handshake.hh"
#include "backend/daemon/workers/child.hh"
#include "base/log.hh"
#include "wire/checkpoint.hh"

namespace outboard::backend {
namespace {

using wire::checkpoint_step;

/// A client that takes no answer for this long is gone.
constexpr std::chrono::seconds answer_patience{10};

CUresult restore(const api::driver_table& d, pid_t worker, const wire::checkpoint_question& q) {
  std::vector<CUcheckpointGpuPair> pairs(q.devices.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    std::memcpy(&pairs[i].oldUuid, q.devices[i].first.data(), sizeof pairs[i].oldUuid);
    std::memcpy(&pairs[i].newUuid, q.devices[i].second.data(), sizeof pairs[i].newUuid);
  }
  CUcheckpointRestoreArgs arguments{};
  arguments.gpuPairs = pairs.data();
  arguments.gpuPairsCount = static_cast<unsigned>(pairs.size());
  return call_driver(d.cuCheckpointProcessRestore, worker, pairs.empty() ? nullptr : &arguments);
}

wire::checkpoint_answer carry_out(const api::driver_table& d, pid_t worker,
                                  const wire::checkpoint_question& q) {
  wire::checkpoint_answer answer{.known = true};
  CUprocessState state{};
  CUcheckpointLockArgs lock{};
  lock.timeoutMs = q.milliseconds;
  switch (q.step) {
    case checkpoint_step::state:
      answer.code = call_driver(d.cuCheckpointProcessGetState, worker, &state);
      answer.state = state;
      break;
    case checkpoint_step::lock:
      answer.code = call_driver(d.cuCheckpointProcessLock, worker, &lock);
      break;
    case checkpoint_step::checkpoint:
      answer.code = call_driver(d.cuCheckpointProcessCheckpoint, worker, nullptr);
      break;
    case checkpoint_step::restore:
      // Without persistence mode the boards may have gone to sleep with their last user.
      answer.code = call_driver(d.cuInit, 0u);
      if (answer.code == CUDA_SUCCESS) answer.code = restore(d, worker, q);
      break;
    case checkpoint_step::unlock:
      answer.code = call_driver(d.cuCheckpointProcessUnlock, worker, nullptr);
      break;
  }
  return answer;
}

}  // namespace

int run_checkpoint_helper(const checkpoint_helper_options& options) {
  if (const status tied = die_with_parent(options.parent); !tied.ok()) return 1;
  ::fcntl(worker_control_descriptor, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_NAME, "outboard-chkpt");
  if (options.confine && !options.confine()) return 1;
  auto message = receive_control(worker_control_descriptor, true);
  if (!message.ok() || !*message) return 1;
  const auto about = decode_client((*message)->payload);
  CHECK(about.ok() && (*message)->descriptor);
  const auto hello = wire::decode_hello(about->assign.hello);
  CHECK(hello.ok());
  const auto question = wire::decode_checkpoint_question(hello->admin_question);
  CHECK(question.ok());  // the daemon has looked at it
  transport::transport* t = options.transports->find(about->assign.scheme);
  CHECK(t != nullptr);
  auto connection = t->attach(std::move((*message)->descriptor));
  if (!connection.ok()) return 1;
  wire::checkpoint_answer answer{.known = true, .code = CUDA_ERROR_NOT_SUPPORTED};
  if (auto device = options.open_device(); device.ok()) {
    answer = carry_out((*device)->cuda(), options.worker, *question);
  } else {
    log::warn("checkpoint: ", device.error().message);
  }
  const std::vector<std::byte> frame = make_welcome(about->assign.seal, encode(answer));
  const iovec part{const_cast<std::byte*>(frame.data()), frame.size()};
  (void)(*connection)->send(std::span(&part, 1), transport::clock::now() + answer_patience);
  (*connection)->shutdown();
  return 0;
}

}  // namespace outboard::backend
