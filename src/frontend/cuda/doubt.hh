// Arguments that a driver may refuse at once: a post that carries them waits for the driver's answer, so that
// the program gets its code at the call. Nothing is decided here; a needless doubt costs a round trip. Any
// thread.
#pragma once

#include <string_view>
#include <tuple>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/copying/elsewhere.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

/// An event and a stream of two contexts; the default streams are the current one's.
inline bool apart(CUevent event, CUstream stream) {
  const object* e = find_object<object>(event);
  const object* s = find_object<object>(stream);
  const std::uint64_t context = s ? s->context : this_lane().context_handle();
  return e && e->context && e->context != context;
}

/// What was recorded in a capture cannot be waited for outside, even when the capture is over.
inline void note_record(CUevent event) {
  if (auto* e = find_object<event_info>(event)) e->captured.store(any_capture_open());
}

template <class T>
bool on_default(T argument) {
  if constexpr (std::is_same_v<T, CUstream>) return default_stream(argument);
  return false;
}

inline bool odd_fill(std::uint64_t address, std::uint64_t pitch, std::uint64_t width, std::uint64_t height,
                     std::uint64_t element) {
  if ((address | pitch) % element != 0 || width > ~std::uint64_t{0} / element) return true;
  return height > 1 && pitch < width * element;
}

template <api::opcode Op, class... A>
bool doubtful(A... arguments) {
  constexpr std::string_view name = api::function<Op>::name;
  [[maybe_unused]] const std::tuple<A...> a(arguments...);
  [[maybe_unused]] constexpr std::uint64_t element = name.find("D32") != name.npos   ? 4
                                                     : name.find("D16") != name.npos ? 2
                                                                                     : 1;
  if constexpr ((std::is_same_v<A, CUstream> || ...)) {
    // The legacy stream may not be used beside a captured stream that waits for it.
    if (any_capture_open() && ((on_default(arguments)) || ...)) return true;
  }
  if constexpr (name.starts_with("cuStreamCreate")) {
    return (std::get<1>(a) & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0;
  } else if constexpr (name.starts_with("cuStreamDestroy")) {
    return default_stream(std::get<0>(a));
  } else if constexpr (name == "cuEventCreate") {
    constexpr unsigned common = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    return (std::get<1>(a) & ~common) != 0;
  } else if constexpr (name.starts_with("cuEventRecordWithFlags")) {
    note_record(std::get<0>(a));
    return std::get<2>(a) != 0 || apart(std::get<0>(a), std::get<1>(a));
  } else if constexpr (name.starts_with("cuEventRecord")) {
    note_record(std::get<0>(a));
    return apart(std::get<0>(a), std::get<1>(a));
  } else if constexpr (name.starts_with("cuStreamWaitEvent")) {
    const auto* event = find_object<event_info>(std::get<1>(a));
    return std::get<2>(a) != 0 || any_capture_open() || (event && event->captured.load());
  } else if constexpr (name.starts_with("cuMemsetD2D")) {
    return of_another_device(this_lane(), std::get<0>(a)) ||
           odd_fill(std::get<0>(a), std::get<1>(a), std::get<3>(a), std::get<4>(a), element);
  } else if constexpr (name.starts_with("cuMemsetD")) {
    return of_another_device(this_lane(), std::get<0>(a)) ||
           odd_fill(std::get<0>(a), 0, std::get<2>(a), 1, element);
  } else if constexpr (name.starts_with("cuMemcpyDtoD")) {
    return of_another_device(this_lane(), std::get<0>(a)) || of_another_device(this_lane(), std::get<1>(a));
  } else if constexpr (name.starts_with("cuStreamWaitValue") || name.starts_with("cuStreamWriteValue")) {
    constexpr std::uint64_t bytes = name.find("64") != name.npos ? 8 : 4;
    constexpr unsigned common = name.starts_with("cuStreamWait") ? 3 : 1;
    return std::get<1>(a) % bytes != 0 || (std::get<3>(a) & ~common) != 0;
  }
  return false;
}

}  // namespace outboard::frontend::cuda
