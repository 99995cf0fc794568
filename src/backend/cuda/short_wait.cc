#include "backend/cuda/short_wait.hh"

#include <algorithm>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/session.hh"
#include "backend/session/patience.hh"

namespace outboard::backend {

/// Events of ours behind all that the streams have to do. On a 580 driver a look at an event costs 0.3 us,
/// one at a stream 1.7. Not beside a capture, which would take the record in or be lost; not where the
/// context is another one's.
bool short_wait::mark_ends(call& c, std::span<const CUstream> streams, bool per_thread,
                           std::span<CUevent> ends) {
  const std::uint64_t context = c.header.context;
  auto* record = per_thread ? driver_.cuEventRecord_ptsz : driver_.cuEventRecord;
  if (context == 0 || c.own.context != context || c.session.captures().any() || !record) return false;
  marks& own = events_.try_emplace(context).first->second;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    if (!own[i] && call_driver(driver_.cuEventCreate, &own[i], CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS)
      return own[i] = nullptr, false;
    if (record(own[i], streams[i]) != CUDA_SUCCESS) return false;
    ends[i] = own[i];
  }
  return true;
}

void short_wait::occupy(call& c, CUstream stream) {
  CUevent unused = nullptr;
  (void)mark_ends(c, {&stream, 1}, false, {&unused, 1});
}

CUresult short_wait::for_event(call& c, CUevent event) {
  CUresult state = CUDA_ERROR_NOT_READY;
  spin_while([&] { return c.core.patience(); },
             [&] { return (state = driver_.cuEventQuery(event)) == CUDA_ERROR_NOT_READY; });
  return state;
}

CUresult short_wait::for_stream(call& c, CUstream stream, bool per_thread) {
  CUevent end = nullptr;
  CUresult state = CUDA_ERROR_NOT_READY;
  if (mark_ends(c, {&stream, 1}, per_thread, {&end, 1})) {
    state = for_event(c, end);
    if (state == CUDA_SUCCESS || state == CUDA_ERROR_NOT_READY) return state;
  }
  auto* query = per_thread ? driver_.cuStreamQuery_ptsz : driver_.cuStreamQuery;
  spin_while([&] { return c.core.patience(); },
             [&] { return (state = query(stream)) == CUDA_ERROR_NOT_READY; });
  return state;
}

CUresult short_wait::for_context(call& c) {
  std::array<CUstream, work_in_streams::most> streams{};
  const std::span<const CUstream> known = c.session.work().all_of(c.header.context);
  std::ranges::copy(known, streams.begin());
  marks ends{};
  if (known.empty() || !mark_ends(c, std::span(streams).first(known.size()), false, ends))
    return CUDA_ERROR_NOT_READY;
  const auto until = std::chrono::steady_clock::now() + c.core.patience();
  for (const CUevent end : std::span(ends).first(known.size())) {
    CUresult state = CUDA_ERROR_NOT_READY;
    while ((state = driver_.cuEventQuery(end)) == CUDA_ERROR_NOT_READY &&
           std::chrono::steady_clock::now() < until) {
    }
    if (state != CUDA_SUCCESS) return CUDA_ERROR_NOT_READY;
  }
  return CUDA_SUCCESS;
}

}  // namespace outboard::backend
