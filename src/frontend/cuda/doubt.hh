// Arguments that a driver may refuse at once: a post that carries them waits for its word, so that the
// program gets its code at the call. Nothing is decided here; what is doubted in vain costs a round trip. Any
// thread.
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/copying/other_device.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

/// An event and a stream of two contexts; the default streams are the current one's.
inline bool apart(const lane& own, CUevent event, CUstream stream) {
  const object* e = find_object<object>(own, event);
  const object* s = find_object<object>(own, stream);
  const std::uint64_t context = s ? s->context : own.context_handle();
  return e && e->context && e->context != context;
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

namespace detail {

/// The parameter that a word of the line names.
template <std::size_t I, class... A>
auto pick(A... arguments) {
  return std::get<I>(std::tuple<A...>(arguments...));
}

/// The first argument that is a stream, or the default one.
template <class... A>
CUstream stream_among(A... arguments) {
  CUstream found = nullptr;
  bool seen = false;
  const auto look = [&](auto argument) {
    if constexpr (std::is_same_v<decltype(argument), CUstream>) {
      if (!std::exchange(seen, true)) found = argument;
    }
  };
  (look(arguments), ...);
  return found;
}

template <api::opcode Op, class... A>
bool doubtful_fill(const lane& own, A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  const auto address = pick<0>(arguments...);
  const std::uint64_t width = pick<about.extent>(arguments...);
  std::uint64_t pitch = 0, height = 1;
  if constexpr (about.rows != api::no_parameter) {
    pitch = pick<about.pitch>(arguments...);
    height = pick<about.rows>(arguments...);
  }
  return of_another_device(own, address) ||
         odd_fill(address, pitch, width, height, sizeof(pick<about.fill>(arguments...)));
}

template <api::opcode Op, class... A>
bool doubtful_event(const lane& own, [[maybe_unused]] A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  if constexpr (about.records != api::no_parameter)
    return apart(own, pick<about.records>(arguments...), stream_among(arguments...));
  if constexpr (about.awaits != api::no_parameter) {
    const auto* event = find_object<event_info>(own, pick<about.awaits>(arguments...));
    return any_capture_open() || (event && event->captured.load());
  }
  return false;
}

}  // namespace detail

template <api::opcode Op, class... A>
bool doubtful(const lane& own, A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  if constexpr ((std::is_same_v<A, CUstream> || ...)) {
    // The legacy stream may not be used beside a captured stream that waits for it.
    if (any_capture_open() && ((on_default(arguments)) || ...)) return true;
  }
  if constexpr (about.plain != api::no_parameter) {
    if ((detail::pick<about.plain>(arguments...) & ~about.plain_bits) != 0) return true;
  }
  if constexpr (about.aligned != api::no_parameter) {
    constexpr std::size_t size = sizeof(detail::pick<about.aligned>(arguments...));
    const auto odd = [](auto argument) {
      if constexpr (std::is_same_v<decltype(argument), CUdeviceptr>) return argument % size != 0;
      return false;
    };
    if ((odd(arguments) || ...)) return true;
  }
  if constexpr (about.destroys != api::no_parameter) {
    if (on_default(detail::pick<about.destroys>(arguments...))) return true;
  }
  if constexpr (about.fill != api::no_parameter) return detail::doubtful_fill<Op>(own, arguments...);
  if constexpr (about.copies) {
    return of_another_device(own, detail::pick<0>(arguments...)) ||
           of_another_device(own, detail::pick<1>(arguments...));
  }
  return detail::doubtful_event<Op>(own, arguments...);
}

}  // namespace outboard::frontend::cuda
