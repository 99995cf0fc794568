// Calls that name a stream (or an array to destroy) need no current context, because the driver uses the
// object's. A thread without a context gets the object's for the length of the call. A copy always gets its
// stream's, which may be another device's, because the blocks that the server stages it in belong to one
// context. Thread-bound.
#pragma once

#include <type_traits>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

namespace detail {

inline context_state* context_behind(const object* found) {
  return found && found->context ? process::instance().objects().find_context(found->context) : nullptr;
}

template <class T>
context_state* context_named_by(T argument) {
  if constexpr (std::is_same_v<T, CUstream>) {
    return default_stream(argument) ? nullptr : context_behind(find_object<object>(argument));
  } else if constexpr (std::is_same_v<T, const CUlaunchConfig*>) {
    return argument ? context_named_by(argument->hStream) : nullptr;
  }
  return nullptr;
}

}  // namespace detail

template <api::opcode Op, class End, class... A>
CUresult in_its_context(End&& end, A... arguments) {
  constexpr bool names_stream =
      ((std::is_same_v<A, CUstream> || std::is_same_v<A, const CUlaunchConfig*>) || ...);
  constexpr bool array = api::function<Op>::about.object == api::object_change::ends_array;
  if constexpr (names_stream || array) {
    constexpr bool copy = api::copies(api::function<Op>::about.leaves);
    if (lane& own = this_lane(); copy || !own.current()) [[unlikely]] {
      context_state* context = nullptr;
      if constexpr (array) {
        ((context = detail::context_behind(find_object<object>(arguments))), ...);
      } else {
        ((context = context ? context : detail::context_named_by(arguments)), ...);
      }
      const bool other = copy && context && context != own.owner() && context->active.load();
      if (context && (!own.current() || other)) {
        own.contexts.push_back(context);
        const CUresult code = end();
        own.contexts.pop_back();
        return code;
      }
    }
  }
  return end();
}

/// What the driver says of an object whose context was destroyed or has failed, whatever is current.
template <class H>
CUresult state_of_context(H handle) {
  const object* found = find_object<object>(handle);
  const context_state* context = detail::context_behind(found);
  if (!context) return CUDA_SUCCESS;
  if (!context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (found->late.load(std::memory_order_relaxed)) return CUDA_ERROR_INVALID_CONTEXT;
  return static_cast<CUresult>(context->sticky.load(std::memory_order_acquire));
}

/// A current context that was destroyed or has failed answers for what needs none.
inline CUresult state_of_current() {
  const lane& own = this_lane();
  return own.current() ? process::instance().gate(own) : CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
