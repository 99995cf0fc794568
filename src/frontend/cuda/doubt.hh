// Arguments that a driver may refuse at once: a post that carries them waits for the driver's answer, so that
// the program gets its code at the call. Nothing is decided here; a needless doubt costs a round trip. Any
// thread.
#pragma once

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

/// Of a fill: {address, value, count}, or {address, pitch, value, width, height}, and perhaps a stream.
template <class... A>
inline constexpr bool fills_rows = sizeof...(A) >= 5;
/// The size of the value.
template <class... A>
inline constexpr std::uint64_t filled_with =
    sizeof(std::tuple_element_t<fills_rows<A...> ? 2 : 1, std::tuple<A...>>);

template <class... A>
bool doubtful_fill(const std::tuple<A...>& a) {
  if (of_another_device(this_lane(), std::get<0>(a))) return true;
  if constexpr (fills_rows<A...>) {
    return odd_fill(std::get<0>(a), std::get<1>(a), std::get<3>(a), std::get<4>(a), filled_with<A...>);
  } else {
    return odd_fill(std::get<0>(a), 0, std::get<2>(a), 1, filled_with<A...>);
  }
}

/// Of {stream, address, value, flags}, which wait for a word or write one.
template <class... A>
bool doubtful_word(const std::tuple<A...>& a, bool waits) {
  constexpr std::uint64_t bytes = sizeof(std::tuple_element_t<2, std::tuple<A...>>);
  const unsigned common = waits ? 3 : 1;
  return std::get<1>(a) % bytes != 0 || (std::get<3>(a) & ~common) != 0;
}

template <api::opcode Op, class... A>
bool doubtful(A... arguments) {
  using api::doubt;
  using api::left_work;
  [[maybe_unused]] constexpr doubt what = api::function<Op>::about.doubts;
  [[maybe_unused]] constexpr left_work left = api::function<Op>::about.leaves;
  [[maybe_unused]] const std::tuple<A...> a(arguments...);
  if constexpr ((std::is_same_v<A, CUstream> || ...)) {
    // The legacy stream may not be used beside a captured stream that waits for it.
    if (any_capture_open() && ((on_default(arguments)) || ...)) return true;
  }
  if constexpr (what == doubt::stream_flags) {
    return (std::get<1>(a) & ~static_cast<unsigned>(CU_STREAM_NON_BLOCKING)) != 0;
  } else if constexpr (what == doubt::default_stream) {
    return default_stream(std::get<0>(a));
  } else if constexpr (what == doubt::event_flags) {
    constexpr unsigned common = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
    return (std::get<1>(a) & ~common) != 0;
  } else if constexpr (what == doubt::record_with_flags) {
    note_record(std::get<0>(a));
    return std::get<2>(a) != 0 || apart(std::get<0>(a), std::get<1>(a));
  } else if constexpr (what == doubt::record) {
    note_record(std::get<0>(a));
    return apart(std::get<0>(a), std::get<1>(a));
  } else if constexpr (what == doubt::captured_event) {
    const auto* event = find_object<event_info>(std::get<1>(a));
    return std::get<2>(a) != 0 || any_capture_open() || (event && event->captured.load());
  } else if constexpr (what == doubt::other_device) {
    return of_another_device(this_lane(), std::get<0>(a)) || of_another_device(this_lane(), std::get<1>(a));
  } else if constexpr (what == doubt::capture) {
    return any_capture_open();  // the server says whether it can take that in
  } else if constexpr (left == left_work::fills) {
    return doubtful_fill(a);
  } else if constexpr (left == left_work::waits_for_word || left == left_work::writes_word) {
    return doubtful_word(a, left == left_work::waits_for_word);
  }
  return false;
}

}  // namespace outboard::frontend::cuda
