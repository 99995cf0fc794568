// Contexts of the cpu device and the calling thread's stack of them. A context groups streams, memory and
// modules and carries the sticky error. Any thread; the stack is the calling thread's own.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "device/cpu/memory/kernel_heap.hh"
#include "device/cpu/scheduler.hh"

namespace outboard::device::cpu {

struct context {
  std::uint64_t id = 0;
  std::uint64_t handle = 0;
  bool primary = false;
  std::atomic<bool> active{true};  ///< primary: retained; else: not destroyed
  std::atomic<unsigned> flags{0};
  std::atomic<unsigned> version{3020};

  std::array<std::atomic<std::size_t>, CU_LIMIT_MAX> limits{};
  const group_ptr group = std::make_shared<stream_group>();
  const stream_ptr legacy = std::make_shared<stream>(group, stream_kind::legacy);

  std::mutex heap_mutex;
  std::shared_ptr<kernel_heap> heap;  ///< of kernels' malloc; null until the first launch that may need it

  int error() const { return group->error.load(std::memory_order_acquire); }
  void fresh();  ///< default limits, no error
};
using context_ptr = std::shared_ptr<context>;

/// What the calling thread has: its stack, its default streams.
struct thread_state {
  std::uint64_t generation = 0;
  std::vector<context_ptr> stack;
  std::map<std::uint64_t, stream_ptr> default_streams;  ///< by context id
  bool in_callback = false;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

/// Marks the thread while it runs the program's function: CUDA calls from there are not permitted.
class callback_scope {
 public:
  callback_scope();
  ~callback_scope();
  callback_scope(const callback_scope&) = delete;
  callback_scope& operator=(const callback_scope&) = delete;

 private:
  bool before_;
};

/// The calling thread's, emptied when it belongs to an earlier machine.
thread_state& own_thread();

/// The current context in a usable state, or why there is none: 3 before cuInit, 800 in a callback, 201
/// without a context, 709 when it is gone, else its sticky error.
CUresult current_context(context_ptr& out);

/// The same with a context of the caller's choice (null: the current one).
CUresult context_of(CUcontext handle, context_ptr& out);

/// The queue behind a stream handle; 0, 1, 2 are the default streams, `per_thread` says what 0 is.
CUresult stream_of(const context_ptr& c, CUstream handle, bool per_thread, stream_ptr& out);
/// The same for mere questions about captures: the legacy stream is refused beside one, which is not lost.
CUresult stream_to_ask(const context_ptr& c, CUstream handle, bool per_thread, stream_ptr& out);

/// Runs an entry's body with the current context; exceptions (memory of the host) end here.
template <class Body>
CUresult with_context(Body&& body) noexcept {
  try {
    context_ptr c;
    if (const CUresult result = current_context(c); result != CUDA_SUCCESS) return result;
    return body(*c, c);
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

/// 3 before cuInit.
CUresult initialised();

/// Runs an entry's body that needs no context but cuInit.
template <class Body>
CUresult after_init(Body&& body) noexcept {
  try {
    if (const CUresult result = initialised(); result != CUDA_SUCCESS) return result;
    return body();
  } catch (const std::bad_alloc&) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

}  // namespace outboard::device::cpu
