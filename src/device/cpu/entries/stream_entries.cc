// Entries of the chapter stream, stream memory operations and host functions.
#include <algorithm>

#include "device/cpu/graph/capture.hh"
#include "device/cpu/ipc_event.hh"
#include "device/cpu/machine.hh"
#include "device/cpu/memory/memory_operations.hh"

namespace outboard::device::cpu {
namespace {

/// The priority is remembered and changes nothing: what is ready runs in the order in which it became so.
CUresult create_with_priority(CUstream* out, unsigned flags, int priority) {
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
    s->priority = std::clamp(priority, greatest_priority, 0);
    return *out = reinterpret_cast<CUstream>(here().streams.insert(std::move(s))), CUDA_SUCCESS;
  });
}

CUresult create(CUstream* out, unsigned flags) { return create_with_priority(out, flags, 0); }

CUresult destroy(CUstream handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    // What is queued still runs: the scheduler keeps the queue.
    const auto gone = here().streams.remove(reinterpret_cast<std::uint64_t>(handle));
    if (gone == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (gone->queue->capturing()) capture_forget(*gone->queue);
    return CUDA_SUCCESS;
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
    if (s->capturing()) return capture_forbids(*s);
    here().work.synchronize(s);
    return static_cast<CUresult>(s->group()->error.load(std::memory_order_acquire));
  });
}

template <bool PerThread>
CUresult query(CUstream handle) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) -> CUresult {
    if (s->capturing()) return capture_forbids(*s);
    const bool idle = here().work.idle(s);
    if (const int error = s->group()->error.load(std::memory_order_acquire); error != CUDA_SUCCESS) {
      return static_cast<CUresult>(error);
    }
    return idle ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

/// What another process has recorded is waited for by a task: the stream holds a thread meanwhile.
void wait_for_another(const stream_ptr& s, event_object& e) {
  const std::uint64_t number = e.shared->last();
  if (e.shared->done(number)) return;
  here().work.submit(s, make_task([shared = e.shared, number, group = s->group()] {
                       shared->await(number, [&] { return group->error.load() != CUDA_SUCCESS; });
                       return CUDA_SUCCESS;
                     }));
}

template <bool PerThread>
CUresult wait_event(CUstream handle, CUevent event, unsigned flags) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) -> CUresult {
    const auto e = here().events.find(reinterpret_cast<std::uint64_t>(event));
    if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (s->capturing() || e->captured.load(std::memory_order_acquire)) {
      bool done = false;
      const CUresult r = capture_wait(s, e, event, flags, done);
      if (r != CUDA_SUCCESS || done) return r;
    }
    if (flags & CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;  // for captures alone
    if (e->shared != nullptr) return wait_for_another(s, *e), CUDA_SUCCESS;
    point_ptr point;
    {
      std::lock_guard lock(e->mutex);
      point = e->point;
    }
    if (point != nullptr) here().work.wait_event(s, std::move(point));
    return CUDA_SUCCESS;
  });
}

template <bool PerThread>
CUresult launch_host_function(CUstream handle, CUhostFn function, void* data) {
  return on_stream(handle, PerThread, [&](const stream_ptr& s, context&) -> CUresult {
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (s->capturing()) return capture_node(*s, CU_GRAPH_NODE_TYPE_HOST, host_work{function, data});
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
    if (s->capturing()) return capture_forbids(*s);
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

CUresult exchange_capture_mode(CUstreamCaptureMode* mode) {
  return after_init([&]() -> CUresult {
    if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return std::swap(own_thread().capture_mode, *mode), CUDA_SUCCESS;
  });
}

// --- memory operations
// ----------------------------------------------------------------------------------------------

CUresult operate(CUstream handle, bool per_thread, std::vector<CUstreamBatchMemOpParams> operations,
                 unsigned flags) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = stream_of(c, handle, per_thread, s); r != CUDA_SUCCESS) return r;
    if (const CUresult r = check_memory_operations(operations, flags); r != CUDA_SUCCESS) return r;
    if (s->capturing()) {
      return capture_node(*s, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
                          memory_operations_work{c, std::move(operations), flags});
    }
    here().work.submit(s, make_task([operations = std::move(operations), group = s->group()] {
                         return run_memory_operations(operations, group);
                       }));
    return CUDA_SUCCESS;
  });
}

template <class T, bool PerThread>
CUresult write_value(CUstream handle, CUdeviceptr address, T value, unsigned flags) {
  CUstreamBatchMemOpParams one{};
  one.writeValue.operation =
      sizeof(T) == 8 ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
  one.writeValue.address = address;
  one.writeValue.value64 = value;
  one.writeValue.flags = flags;
  return operate(handle, PerThread, {one}, 0);
}

template <class T, bool PerThread>
CUresult wait_value(CUstream handle, CUdeviceptr address, T value, unsigned flags) {
  CUstreamBatchMemOpParams one{};
  one.waitValue.operation = sizeof(T) == 8 ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
  one.waitValue.address = address;
  one.waitValue.value64 = value;
  one.waitValue.flags = flags;
  return operate(handle, PerThread, {one}, 0);
}

template <bool PerThread>
CUresult batch(CUstream handle, unsigned count, CUstreamBatchMemOpParams* operations, unsigned flags) {
  if (count > 256 || (count > 0 && operations == nullptr)) return CUDA_ERROR_INVALID_VALUE;
  return operate(handle, PerThread, {operations, operations + count}, flags);
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
  t.cuThreadExchangeStreamCaptureMode = exchange_capture_mode;
  t.cuStreamWriteValue32 = t.cuStreamWriteValue32_v2 = write_value<cuuint32_t, false>;
  t.cuStreamWriteValue32_ptsz = t.cuStreamWriteValue32_v2_ptsz = write_value<cuuint32_t, true>;
  t.cuStreamWriteValue64 = t.cuStreamWriteValue64_v2 = write_value<cuuint64_t, false>;
  t.cuStreamWriteValue64_ptsz = t.cuStreamWriteValue64_v2_ptsz = write_value<cuuint64_t, true>;
  t.cuStreamWaitValue32 = t.cuStreamWaitValue32_v2 = wait_value<cuuint32_t, false>;
  t.cuStreamWaitValue32_ptsz = t.cuStreamWaitValue32_v2_ptsz = wait_value<cuuint32_t, true>;
  t.cuStreamWaitValue64 = t.cuStreamWaitValue64_v2 = wait_value<cuuint64_t, false>;
  t.cuStreamBatchMemOp = t.cuStreamBatchMemOp_v2 = batch<false>;
  t.cuStreamBatchMemOp_ptsz = t.cuStreamBatchMemOp_v2_ptsz = batch<true>;
  t.cuStreamWaitValue64_ptsz = t.cuStreamWaitValue64_v2_ptsz = wait_value<cuuint64_t, true>;
}

}  // namespace outboard::device::cpu
