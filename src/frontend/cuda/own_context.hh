// Calls that name a stream (or an array to destroy) need no current context: the driver takes the object's. A
// thread without a current context gets that one for the length of the call. A copy always runs in its
// stream's context, which may be another device's, because the memory in which the server stages it belongs
// to one context. Thread-bound.
#pragma once

#include <tuple>
#include <type_traits>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

namespace detail {

inline context_state* context_behind(const lane& own, const object* found) {
  return found && found->context ? own.state().devices.find_context(found->context) : nullptr;
}

template <class T>
context_state* context_named_by(const lane& own, T argument) {
  if constexpr (std::is_same_v<T, CUstream>) {
    return default_stream(argument) ? nullptr : context_behind(own, find_object<object>(own, argument));
  } else if constexpr (std::is_same_v<T, const CUlaunchConfig*>) {
    return argument ? context_named_by(own, argument->hStream) : nullptr;
  }
  return nullptr;
}

}  // namespace detail

/// Can a call with these arguments need another context than the thread's?
template <api::opcode Op, class... A>
inline constexpr bool may_need_context =
    api::function<Op>::about.context_of != api::no_parameter ||
    ((std::is_same_v<A, CUstream> || std::is_same_v<A, const CUlaunchConfig*>) || ...);

template <api::opcode Op, class End, class... A>
CUresult in_its_context(lane& own, End&& end, A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  if constexpr (may_need_context<Op, A...>) {
    if (about.stream_context || !own.current()) [[unlikely]] {
      context_state* context = nullptr;
      if constexpr (about.context_of != api::no_parameter) {
        const auto handle = std::get<about.context_of>(std::tuple<A...>(arguments...));
        context = detail::context_behind(own, find_object<object>(own, handle));
      } else {
        ((context = context ? context : detail::context_named_by(own, arguments)), ...);
      }
      const bool other = about.stream_context && context && context != own.owner() && context->active.load();
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
CUresult state_of_context(const lane& own, H handle) {
  const object* found = find_object<object>(own, handle);
  const context_state* context = detail::context_behind(own, found);
  if (!context) return CUDA_SUCCESS;
  if (!context->active.load(std::memory_order_acquire)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (found->late.load(std::memory_order_relaxed)) return CUDA_ERROR_INVALID_CONTEXT;
  return static_cast<CUresult>(context->sticky.load(std::memory_order_acquire));
}

/// What calls that need no context return while the current one is destroyed or has failed.
inline CUresult state_of_current(const lane& own) {
  return own.current() ? own.state().connection.gate(own) : CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
