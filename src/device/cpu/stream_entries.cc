// Entries of the chapter stream, stream memory operations and host functions.
#include <atomic>
#include <chrono>
#include <thread>

#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

CUresult create_with_priority(CUstream* out, unsigned flags, int) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (out == nullptr || (flags & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    const auto kind = flags == CU_STREAM_NON_BLOCKING ? stream_kind::non_blocking : stream_kind::blocking;
    auto s = std::make_shared<stream_object>();
    s->queue = std::make_shared<stream>(c->group, kind);
    s->owner = c;
    s->flags = flags;
    s->id = here().next_id.fetch_add(1);
    // Priorities are clamped to the range, which is one value here.
    return *out = reinterpret_cast<CUstream>(here().streams.insert(std::move(s))), CUDA_SUCCESS;
  });
}

CUresult create(CUstream* out, unsigned flags) { return create_with_priority(out, flags, 0); }

CUresult destroy(CUstream handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    // What is queued still runs: the scheduler keeps the queue.
    return here().streams.remove(reinterpret_cast<std::uint64_t>(handle)) ? CUDA_SUCCESS
                                                                          : CUDA_ERROR_INVALID_HANDLE;
  });
}

/// Calls body(queue) with the stream behind the handle.
template <class Body>
CUresult on_stream(CUstream handle, bool per_thread, Body&& body) {
  return with_context([&](context& own, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = stream_of(c, handle, per_thread, s); r != CUDA_SUCCESS) return r;
    return body(s, own);
  });
}

template <bool PerThread>
CUresult synchronize(CUstream handle) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) {
    here().work.synchronize(s);
    return static_cast<CUresult>(s->group()->error.load(std::memory_order_acquire));
  });
}

template <bool PerThread>
CUresult query(CUstream handle) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) -> CUresult {
    const bool idle = here().work.idle(s);
    if (const int error = s->group()->error.load(std::memory_order_acquire); error != CUDA_SUCCESS) {
      return static_cast<CUresult>(error);
    }
    return idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

template <bool PerThread>
CUresult wait_event(CUstream handle, CUevent event, unsigned flags) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) -> CUresult {
    const auto e = here().events.find(reinterpret_cast<std::uint64_t>(event));
    if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
    point_ptr point;
    {
      std::lock_guard lock(e->mutex);
      point = e->point;
    }
    if (point != nullptr) here().work.wait_event(s, std::move(point));
    return CUDA_SUCCESS;
  });
}

/// Marks the thread while it runs the program's function: CUDA calls from there are not permitted.
class callback_scope {
 public:
  callback_scope() : before_(own_thread().in_callback) { own_thread().in_callback = true; }
  ~callback_scope() { own_thread().in_callback = before_; }

 private:
  bool before_;
};

template <bool PerThread>
CUresult launch_host_function(CUstream handle, CUhostFn function, void* data) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) -> CUresult {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    here().work.submit(s, make_task([=] {
                         const callback_scope scope;
                         function(data);
                         return CUDA_SUCCESS;
                       }));
    return CUDA_SUCCESS;
  });
}

template <bool PerThread>
CUresult add_callback(CUstream handle, CUstreamCallback callback, void* data, unsigned flags) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) -> CUresult {
    if (callback == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    here().work.submit(s, make_task([=] {
                         const callback_scope scope;
                         callback(handle, CUDA_SUCCESS, data);
                         return CUDA_SUCCESS;
                       }));
    return CUDA_SUCCESS;
  });
}

// --- questions
// ------------------------------------------------------------------------------------------------------

/// The object of an explicit stream; for a default stream one made up of its context.
template <class Answer>
CUresult about(CUstream handle, bool per_thread, Answer&& answer) {
  return on_stream(handle, per_thread, [&](const stream_ptr& s, context& own) -> CUresult {
    if (const auto found = here().streams.find(reinterpret_cast<std::uint64_t>(handle)))
      return answer(*found);
    stream_object plain;
    plain.queue = s;
    plain.owner = here().contexts.find(own.handle);
    // Ids are unique: default streams take theirs from the address of their queue.
    plain.id = reinterpret_cast<std::uint64_t>(s.get());
    return answer(plain);
  });
}

template <bool PerThread>
CUresult get_flags(CUstream handle, unsigned* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(handle, PerThread, [&](const stream_object& s) { return *out = s.flags, CUDA_SUCCESS; });
}
template <bool PerThread>
CUresult get_priority(CUstream handle, int* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(handle, PerThread, [&](const stream_object& s) { return *out = s.priority, CUDA_SUCCESS; });
}
template <bool PerThread>
CUresult get_id(CUstream handle, unsigned long long* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(handle, PerThread, [&](const stream_object& s) { return *out = s.id, CUDA_SUCCESS; });
}
template <bool PerThread>
CUresult get_device(CUstream handle, CUdevice* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(handle, PerThread, [&](const stream_object&) { return *out = 0, CUDA_SUCCESS; });
}
template <bool PerThread>
CUresult get_context(CUstream handle, CUcontext* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(handle, PerThread, [&](const stream_object& s) {
    return *out = reinterpret_cast<CUcontext>(s.owner->handle), CUDA_SUCCESS;
  });
}

// Nothing can be captured on this device (cuStreamBeginCapture has no entry), so nothing ever is.
template <bool PerThread>
CUresult is_capturing(CUstream handle, CUstreamCaptureStatus* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(handle, PerThread,
               [&](const stream_object&) { return *out = CU_STREAM_CAPTURE_STATUS_NONE, CUDA_SUCCESS; });
}
template <bool PerThread>
CUresult get_capture_info(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                          const CUgraphNode**, std::size_t*) {
  return is_capturing<PerThread>(handle, status);
}
template <bool PerThread>
CUresult get_capture_info_v3(CUstream handle, CUstreamCaptureStatus* status, cuuint64_t*, CUgraph*,
                             const CUgraphNode**, const CUgraphEdgeData**, std::size_t*) {
  return is_capturing<PerThread>(handle, status);
}

CUresult exchange_capture_mode(CUstreamCaptureMode* mode) {
  return after_init([&]() -> CUresult {
    static thread_local CUstreamCaptureMode own = CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (mode == nullptr || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    return std::swap(own, *mode), CUDA_SUCCESS;
  });
}

// --- memory operations
// ----------------------------------------------------------------------------------------------

template <class T, bool PerThread>
CUresult write_value(CUstream handle, CUdeviceptr address, T value, unsigned flags) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) -> CUresult {
    if (address % sizeof(T) != 0 || !here().store->accessible(address, sizeof(T), true))
      return CUDA_ERROR_INVALID_VALUE;
    if ((flags & ~static_cast<unsigned>(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)) != 0)
      return CUDA_ERROR_INVALID_VALUE;
    here().work.submit(
        s, make_task([=] {
          const memory::flight flight(*here().store);
          // Seen by a polling host or kernel after everything before it in the stream.
          std::atomic_ref(*reinterpret_cast<T*>(address)).store(value, std::memory_order_release);
          return CUDA_SUCCESS;
        }));
    return CUDA_SUCCESS;
  });
}

template <class T>
bool reached(T seen, T value, unsigned how) {
  switch (how) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(seen - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return seen == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (seen & value) != 0;
    default:
      return static_cast<T>(~(seen | value)) != 0;  // CU_STREAM_WAIT_VALUE_NOR
  }
}

template <class T, bool PerThread>
CUresult wait_value(CUstream handle, CUdeviceptr address, T value, unsigned flags) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) -> CUresult {
    if (address % sizeof(T) != 0 || !here().store->accessible(address, sizeof(T), false)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (flags > CU_STREAM_WAIT_VALUE_NOR)
      return CUDA_ERROR_INVALID_VALUE;  // attribute 98 says no remote flush
    here().work.submit(s, make_task([=, group = s->group()] {
                         const memory::flight flight(*here().store);
                         const std::atomic_ref seen(*reinterpret_cast<T*>(address));
                         for (int tries = 0; !reached<T>(seen.load(std::memory_order_acquire), value, flags);
                              ++tries) {
                           if (group->error.load(std::memory_order_acquire) != CUDA_SUCCESS) break;
                           if (tries < 1000) {
                             std::this_thread::yield();
                           } else {
                             std::this_thread::sleep_for(std::chrono::microseconds(50));
                           }
                         }
                         return CUDA_SUCCESS;
                       }));
    return CUDA_SUCCESS;
  });
}

}  // namespace

void fill_stream_entries(api::driver_table& t) {
  t.cuStreamCreate = create;
  t.cuStreamCreateWithPriority = create_with_priority;
  t.cuStreamDestroy = t.cuStreamDestroy_v2 = destroy;
  t.cuStreamSynchronize = synchronize<false>;
  t.cuStreamSynchronize_ptsz = synchronize<true>;
  t.cuStreamQuery = query<false>;
  t.cuStreamQuery_ptsz = query<true>;
  t.cuStreamWaitEvent = wait_event<false>;
  t.cuStreamWaitEvent_ptsz = wait_event<true>;
  t.cuLaunchHostFunc = launch_host_function<false>;
  t.cuLaunchHostFunc_ptsz = launch_host_function<true>;
  t.cuStreamAddCallback = add_callback<false>;
  t.cuStreamAddCallback_ptsz = add_callback<true>;
  t.cuStreamGetFlags = get_flags<false>;
  t.cuStreamGetFlags_ptsz = get_flags<true>;
  t.cuStreamGetPriority = get_priority<false>;
  t.cuStreamGetPriority_ptsz = get_priority<true>;
  t.cuStreamGetId = get_id<false>;
  t.cuStreamGetId_ptsz = get_id<true>;
  t.cuStreamGetDevice = get_device<false>;
  t.cuStreamGetDevice_ptsz = get_device<true>;
  t.cuStreamGetCtx = get_context<false>;
  t.cuStreamGetCtx_ptsz = get_context<true>;
  t.cuStreamIsCapturing = is_capturing<false>;
  t.cuStreamIsCapturing_ptsz = is_capturing<true>;
  t.cuStreamGetCaptureInfo_v2 = get_capture_info<false>;
  t.cuStreamGetCaptureInfo_v2_ptsz = get_capture_info<true>;
  t.cuStreamGetCaptureInfo_v3 = get_capture_info_v3<false>;
  t.cuStreamGetCaptureInfo_v3_ptsz = get_capture_info_v3<true>;
  t.cuThreadExchangeStreamCaptureMode = exchange_capture_mode;
  t.cuStreamWriteValue32 = t.cuStreamWriteValue32_v2 = write_value<cuuint32_t, false>;
  t.cuStreamWriteValue32_ptsz = t.cuStreamWriteValue32_v2_ptsz = write_value<cuuint32_t, true>;
  t.cuStreamWriteValue64 = t.cuStreamWriteValue64_v2 = write_value<cuuint64_t, false>;
  t.cuStreamWriteValue64_ptsz = t.cuStreamWriteValue64_v2_ptsz = write_value<cuuint64_t, true>;
  t.cuStreamWaitValue32 = t.cuStreamWaitValue32_v2 = wait_value<cuuint32_t, false>;
  t.cuStreamWaitValue32_ptsz = t.cuStreamWaitValue32_v2_ptsz = wait_value<cuuint32_t, true>;
  t.cuStreamWaitValue64 = t.cuStreamWaitValue64_v2 = wait_value<cuuint64_t, false>;
  t.cuStreamWaitValue64_ptsz = t.cuStreamWaitValue64_v2_ptsz = wait_value<cuuint64_t, true>;
}

}  // namespace outboard::device::cpu
