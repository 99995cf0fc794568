// Chapter checkpoint: of this process only; the calls of another are that one's own. Locking holds up its
// calls and waits for its work. What would follow, releasing the device and getting it back, needs every
// variable and array of the session saved, which cannot be done yet: it is refused.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>

#include "frontend/cuda/api_lock.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

std::atomic<bool> api_lock::held_{false};

namespace {

struct lock_state {
  std::mutex mutex;
  std::condition_variable released;
};

lock_state& state() {
  static auto* const made = new lock_state;  // never destroyed: see process::instance()
  return *made;
}

/// CUDA_SUCCESS: it is this process, and initialised. Another one has no CUDA that could be seen from here.
CUresult check(int pid) {
  if (pid == ::getpid()) return process::instance().gate(this_lane(), false);
  const bool exists = pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
  return exists ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_OPERATING_SYSTEM;
}

template <std::size_t N>
bool zero(const cuuint64_t (&reserved)[N]) {
  return std::all_of(reserved, reserved + N, [](cuuint64_t v) { return v == 0; });
}

/// Work that was submitted before is over when the lock is there.
CUresult finish_work() {
  process& p = process::instance();
  for (std::size_t device = 0; device < p.facts().devices.size(); ++device) {
    const context_state* context = p.primary(static_cast<int>(device));
    if (!context->active.load() || context->sticky.load()) continue;
    const CUresult code =
        request(api::opcode::cuCtxSynchronize, this_lane()).in_context(context->handle).call();
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

}  // namespace

void api_lock::wait() {
  lock_state& s = state();
  std::unique_lock lock(s.mutex);
  s.released.wait(lock, [] { return !held(); });
}

bool api_lock::take() {
  const std::lock_guard lock(state().mutex);
  return !held_.exchange(true);
}

bool api_lock::release() {
  const std::lock_guard lock(state().mutex);
  const bool was = held_.exchange(false);
  state().released.notify_all();
  return was;
}

namespace ends {

CUresult cuCheckpointProcessGetState(int pid, CUprocessState* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = check(pid); code != CUDA_SUCCESS) return code;
  *out = api_lock::held() ? CU_PROCESS_STATE_LOCKED : CU_PROCESS_STATE_RUNNING;
  return CUDA_SUCCESS;
}

/// The thread that would restore is the driver's; there is none here.
CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int* tid) {
  if (!tid) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = check(pid);
  return code == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : code;
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) {
  if (const CUresult code = check(pid); code != CUDA_SUCCESS) return code;
  if (args && (args->reserved0 || !zero(args->reserved1))) return CUDA_ERROR_INVALID_VALUE;
  if (!api_lock::take()) return CUDA_ERROR_ILLEGAL_STATE;
  const CUresult code = finish_work();
  if (code != CUDA_SUCCESS) api_lock::release();
  return code;
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* args) {
  if (const CUresult code = check(pid); code != CUDA_SUCCESS) return code;
  if (args && !zero(args->reserved)) return CUDA_ERROR_INVALID_VALUE;
  return api_lock::release() ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* args) {
  if (const CUresult code = check(pid); code != CUDA_SUCCESS) return code;
  if (args && !zero(args->reserved)) return CUDA_ERROR_INVALID_VALUE;
  return api_lock::held() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs*) {
  const CUresult code = check(pid);
  return code == CUDA_SUCCESS ? CUDA_ERROR_ILLEGAL_STATE : code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
