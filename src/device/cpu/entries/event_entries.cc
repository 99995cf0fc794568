// Entries of the chapter event.
#include "device/cpu/graph/capture.hh"
#include "device/cpu/ipc_event.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

using event_ptr = std::shared_ptr<event_object>;

CUresult create(CUevent* out, unsigned flags) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    constexpr unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
    const bool between = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (out == nullptr || (flags & ~known) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (between && (flags & CU_EVENT_DISABLE_TIMING) == 0) return CUDA_ERROR_INVALID_VALUE;  // manual
    auto e = std::make_shared<event_object>();
    e->owner = c;
    e->flags = flags;
    if (between && (e->shared = ipc_event::make()) == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    return *out = reinterpret_cast<CUevent>(here().events.insert(std::move(e))), CUDA_SUCCESS;
  });
}

CUresult destroy(CUevent handle) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    return here().events.remove(reinterpret_cast<std::uint64_t>(handle)) ? CUDA_SUCCESS
                                                                         : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult record_with_flags(CUevent handle, CUstream on, unsigned flags, bool per_thread) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    const event_ptr e = here().events.find(reinterpret_cast<std::uint64_t>(handle));
    stream_ptr s;
    if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if ((flags & ~static_cast<unsigned>(CU_EVENT_RECORD_EXTERNAL)) != 0) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = stream_of(c, on, per_thread, s); r != CUDA_SUCCESS) return r;
    if (s->group() != e->owner->group) return CUDA_ERROR_INVALID_HANDLE;
    if (s->capturing()) return capture_record(*s, e, handle, flags);
    if (flags & CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_ILLEGAL_STATE;  // for captures alone
    e->captured.store(false, std::memory_order_release);
    // Under the lock, so that of two recordings the one later in the queue is the one remembered.
    std::lock_guard lock(e->mutex);
    if (e->shared != nullptr) {
      const std::uint64_t number = e->shared->begin();
      here().work.submit(
          s, make_task([shared = e->shared, number] { return shared->finish(number), CUDA_SUCCESS; }));
    }
    e->point = here().work.record(s);
    return CUDA_SUCCESS;
  });
}

template <bool PerThread>
CUresult record(CUevent handle, CUstream on) {
  return record_with_flags(handle, on, 0, PerThread);
}
template <bool PerThread>
CUresult record_flagged(CUevent handle, CUstream on, unsigned flags) {
  return record_with_flags(handle, on, flags, PerThread);
}

point_ptr point_of(event_object& e) {
  std::lock_guard lock(e.mutex);
  return e.point;
}

/// Of a whole context. None of its streams may be under capture: that would be lost.
template <class Body>
CUresult on_context(CUcontext handle, CUevent event, Body&& body) {
  return after_init([&]() -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
    context_ptr c;
    if (const CUresult r = context_of(handle, c); r != CUDA_SUCCESS) return r;
    const event_ptr e = here().events.find(reinterpret_cast<std::uint64_t>(event));
    if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult r = capture_forbids_context(*c->group); r != CUDA_SUCCESS) return r;
    return body(*c, *e);
  });
}

CUresult record_context(CUcontext handle, CUevent event) {
  return on_context(handle, event, [](context& c, event_object& e) -> CUresult {
    if (e.owner->group != c.group) return CUDA_ERROR_INVALID_HANDLE;
    e.captured.store(false, std::memory_order_release);
    const std::lock_guard lock(e.mutex);
    e.point = here().work.record(c.group);
    return CUDA_SUCCESS;
  });
}

CUresult wait_context(CUcontext handle, CUevent event) {
  return on_context(handle, event, [](context& c, event_object& e) -> CUresult {
    const point_ptr point = point_of(e);
    if (point != nullptr) here().work.wait_event(c.group, point);
    return CUDA_SUCCESS;
  });
}

bool done(const point_ptr& point) { return point == nullptr || point->done.load(std::memory_order_acquire); }

// Of an event one may ask without a context.
CUresult query(CUevent handle) {
  return after_init([&]() -> CUresult {
    const event_ptr e = here().events.find(reinterpret_cast<std::uint64_t>(handle));
    if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult r = capture_forbids_event(*e); r != CUDA_SUCCESS) return r;
    if (const CUresult r = capture_forbids_unsafe(); r != CUDA_SUCCESS) return r;
    const bool reached = e->shared != nullptr ? e->shared->done(e->shared->last()) : done(point_of(*e));
    if (!reached) return CUDA_ERROR_NOT_READY;
    return static_cast<CUresult>(e->owner->error());
  });
}

CUresult synchronize(CUevent handle) {
  return after_init([&]() -> CUresult {
    const event_ptr e = here().events.find(reinterpret_cast<std::uint64_t>(handle));
    if (e == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (const CUresult r = capture_forbids_event(*e); r != CUDA_SUCCESS) return r;
    if (const CUresult r = capture_forbids_unsafe(); r != CUDA_SUCCESS) return r;
    if (e->shared != nullptr) {
      e->shared->await(e->shared->last(), [&] { return e->owner->error() != CUDA_SUCCESS; });
    } else if (const point_ptr point = point_of(*e); !done(point)) {
      here().work.synchronize(point);
    }
    return static_cast<CUresult>(e->owner->error());
  });
}

CUresult elapsed(float* milliseconds, CUevent start, CUevent end) {
  return with_context([&](context&, const context_ptr&) -> CUresult {
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const event_ptr first = here().events.find(reinterpret_cast<std::uint64_t>(start));
    const event_ptr second = here().events.find(reinterpret_cast<std::uint64_t>(end));
    if (first == nullptr || second == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (((first->flags | second->flags) & CU_EVENT_DISABLE_TIMING) != 0) return CUDA_ERROR_INVALID_HANDLE;
    if (first->captured.load() || second->captured.load()) return CUDA_ERROR_CAPTURED_EVENT;
    const point_ptr from = point_of(*first), to = point_of(*second);
    if (from == nullptr || to == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!done(from) || !done(to)) return CUDA_ERROR_NOT_READY;
    *milliseconds = std::chrono::duration<float, std::milli>(to->when - from->when).count();
    return CUDA_SUCCESS;
  });
}

}  // namespace

void fill_event_entries(api::driver_table& t) {
  t.cuEventCreate = create;
  t.cuEventDestroy = t.cuEventDestroy_v2 = destroy;
  t.cuEventRecord = record<false>;
  t.cuEventRecord_ptsz = record<true>;
  t.cuEventRecordWithFlags = record_flagged<false>;
  t.cuEventRecordWithFlags_ptsz = record_flagged<true>;
  t.cuCtxRecordEvent = record_context;
  t.cuCtxWaitEvent = wait_context;
  t.cuEventQuery = query;
  t.cuEventSynchronize = synchronize;
  t.cuEventElapsedTime = t.cuEventElapsedTime_v2 = elapsed;
}

}  // namespace outboard::device::cpu
