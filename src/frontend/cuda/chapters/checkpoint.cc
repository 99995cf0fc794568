// Chapter checkpoint. A process number means the session of that process on the server: its daemon finds it
// among those of one identity and has the driver there lock, checkpoint and restore the worker. Of this
// process the calls are held up here as well, so that those wait too which the front-end answers by itself.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/log.hh"
#include "frontend/cuda/api_lock.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/requests.hh"
#include "frontend/dial.hh"
#include "wire/checkpoint.hh"

namespace outboard::frontend::cuda {

std::atomic<bool> api_lock::held_{false};

namespace {

using wire::checkpoint_answer;
using wire::checkpoint_question;
using wire::checkpoint_step;

/// A checkpoint copies all memory of a device, and a lock may wait for work of any length.
constexpr std::chrono::hours patience{24};
/// How soon the process notices that another has unlocked it.
constexpr std::chrono::milliseconds watch_interval{100};

struct lock_state {
  std::mutex mutex;
  std::condition_variable released;
  bool (*is_over)() = nullptr;
  bool asking = false;  ///< one of those who wait asks
};

lock_state& state() {
  static auto* const made = new lock_state;  // never destroyed: see process::instance()
  return *made;
}

template <std::size_t N>
bool zero(const cuuint64_t (&reserved)[N]) {
  return std::all_of(reserved, reserved + N, [](cuuint64_t v) { return v == 0; });
}

/// Work that was submitted before is over when the lock is there.
CUresult finish_work() {
  process& p = process::instance();
  for (std::size_t device = 0; device < p.facts().devices.size(); ++device) {
    const context_state* context = p.objects().primary(static_cast<int>(device));
    if (!context->active.load() || context->sticky.load()) continue;
    const CUresult code =
        request_of<api::opcode::cuCtxSynchronize>(this_lane()).in_context(context->handle).call();
    if (code != CUDA_SUCCESS) return code;
  }
  return CUDA_SUCCESS;
}

/// Nothing: no server knows a session of that process.
std::optional<checkpoint_answer> ask(const checkpoint_question& q) {
  wire::hello hello = introduce_ourselves();
  hello.wanted = wire::purpose_checkpoint;
  hello.environment.clear();
  hello.admin_question = wire::encode(q);
  const auto welcome = process::instance().ask_aside(std::move(hello), transport::clock::now() + patience);
  if (!welcome.ok()) {
    log::warn("cuCheckpointProcess*: ", welcome.error().message);
    return std::nullopt;
  }
  const auto answer = wire::decode_checkpoint_answer(welcome->content);
  return answer.ok() && answer->known ? std::optional(*answer) : std::nullopt;
}

CUresult code_of(const checkpoint_answer& answer) { return static_cast<CUresult>(answer.code); }

/// The driver's code for a process without CUDA, or for none.
CUresult no_session(int pid) {
  const bool exists = pid > 0 && (::kill(pid, 0) == 0 || errno == EPERM);
  return exists ? CUDA_ERROR_NOT_INITIALIZED : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult of_other(const checkpoint_question& q) {
  const auto answer = ask(q);
  return answer ? code_of(*answer) : no_session(q.process);
}

bool is_own(int pid) { return pid == ::getpid(); }
/// Of this process's own session it matters whether there is one; of another's the server says it.
CUresult gate(int pid) { return is_own(pid) ? process::instance().gate(this_lane(), false) : CUDA_SUCCESS; }

/// Another process may have unlocked this one.
bool runs_again() {
  const auto answer = ask({checkpoint_step::state, ::getpid(), 0, {}});
  return answer && code_of(*answer) == CUDA_SUCCESS && answer->state == CU_PROCESS_STATE_RUNNING;
}

CUresult lock_own(std::uint32_t milliseconds) {
  if (!api_lock::take()) return CUDA_ERROR_ILLEGAL_STATE;
  CUresult code = finish_work();
  std::optional<checkpoint_answer> answer;
  if (code == CUDA_SUCCESS) {
    answer = ask({checkpoint_step::lock, ::getpid(), milliseconds, {}});
    // A server that does not know us by this number (another name space): the calls wait here all the same.
    if (answer) code = code_of(*answer);
  }
  if (code != CUDA_SUCCESS) {
    api_lock::release();
  } else if (answer) {
    api_lock::watch(runs_again);
  }
  return code;
}

}  // namespace

void api_lock::wait() {
  lock_state& s = state();
  std::unique_lock lock(s.mutex);
  // By the system's clock: the wait by the steady one asks for a C library newer than we promise (2.34).
  while (!s.released.wait_until(lock, std::chrono::system_clock::now() + watch_interval,
                                [] { return !held(); })) {
    if (!s.is_over || s.asking) continue;
    s.asking = true;
    bool (*const is_over)() = s.is_over;
    lock.unlock();
    const bool over = is_over();
    lock.lock();
    s.asking = false;
    if (!over || s.is_over != is_over) continue;
    held_.store(false);
    s.is_over = nullptr;
    s.released.notify_all();
  }
}

bool api_lock::take() {
  const std::lock_guard lock(state().mutex);
  return !held_.exchange(true);
}

bool api_lock::release() {
  lock_state& s = state();
  const std::lock_guard lock(s.mutex);
  const bool was = held_.exchange(false);
  s.is_over = nullptr;
  s.released.notify_all();
  return was;
}

void api_lock::watch(bool (*is_over)()) {
  lock_state& s = state();
  const std::lock_guard lock(s.mutex);
  s.is_over = is_over;
}

namespace ends {

CUresult cuCheckpointProcessGetState(int pid, CUprocessState* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult code = gate(pid); code != CUDA_SUCCESS) return code;
  const auto answer = ask({checkpoint_step::state, pid, 0, {}});
  if (!answer && !is_own(pid)) return no_session(pid);
  const CUresult code = answer ? code_of(*answer) : CUDA_SUCCESS;
  if (code != CUDA_SUCCESS) return code;
  const int local = api_lock::held() ? CU_PROCESS_STATE_LOCKED : CU_PROCESS_STATE_RUNNING;
  *out = static_cast<CUprocessState>(answer ? answer->state : local);
  return CUDA_SUCCESS;
}

/// The thread that restores is one of the worker's, on the server: no number of this machine means it.
CUresult cuCheckpointProcessGetRestoreThreadId(int pid, int* tid) {
  if (!tid) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = is_own(pid) ? gate(pid) : of_other({checkpoint_step::state, pid, 0, {}});
  return code == CUDA_SUCCESS ? CUDA_ERROR_NOT_SUPPORTED : code;
}

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs* args) {
  if (const CUresult code = gate(pid); code != CUDA_SUCCESS) return code;
  if (args && (args->reserved0 || !zero(args->reserved1))) return CUDA_ERROR_INVALID_VALUE;
  const std::uint32_t milliseconds = args ? args->timeoutMs : 0;
  return is_own(pid) ? lock_own(milliseconds) : of_other({checkpoint_step::lock, pid, milliseconds, {}});
}

CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs* args) {
  if (const CUresult code = gate(pid); code != CUDA_SUCCESS) return code;
  if (args && !zero(args->reserved)) return CUDA_ERROR_INVALID_VALUE;
  const checkpoint_question q{checkpoint_step::unlock, pid, 0, {}};
  if (!is_own(pid)) return of_other(q);
  const auto answer = ask(q);
  if (answer && code_of(*answer) != CUDA_SUCCESS) return code_of(*answer);
  const bool was = api_lock::release();
  return answer || was ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs* args) {
  if (const CUresult code = gate(pid); code != CUDA_SUCCESS) return code;
  if (args && !zero(args->reserved)) return CUDA_ERROR_INVALID_VALUE;
  const checkpoint_question q{checkpoint_step::checkpoint, pid, 0, {}};
  if (!is_own(pid)) return of_other(q);
  const auto answer = ask(q);
  if (answer) return code_of(*answer);
  return api_lock::held() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_ILLEGAL_STATE;
}

CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs* args) {
  if (const CUresult code = gate(pid); code != CUDA_SUCCESS) return code;
  checkpoint_question q{checkpoint_step::restore, pid, 0, {}};
  if (args) {
    const bool clean =
        std::all_of(std::begin(args->reserved), std::end(args->reserved), [](char c) { return c == 0; }) &&
        args->reserved1 == 0;
    if (!clean || args->gpuPairsCount > wire::max_checkpoint_devices ||
        (args->gpuPairsCount && !args->gpuPairs))
      return CUDA_ERROR_INVALID_VALUE;
    q.devices.resize(args->gpuPairsCount);
    for (std::size_t i = 0; i < q.devices.size(); ++i) {
      std::memcpy(q.devices[i].first.data(), &args->gpuPairs[i].oldUuid, sizeof(wire::device_uuid));
      std::memcpy(q.devices[i].second.data(), &args->gpuPairs[i].newUuid, sizeof(wire::device_uuid));
    }
  }
  if (!is_own(pid)) return of_other(q);
  const auto answer = ask(q);
  return answer ? code_of(*answer) : CUDA_ERROR_ILLEGAL_STATE;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
