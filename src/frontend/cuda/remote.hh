// The generated end of a CALL or POST line: check what can be known here, encode, send, decode.
#pragma once

#include <variant>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/copying/other_device.hh"
#include "frontend/cuda/doubt.hh"
#include "frontend/cuda/idle.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/own_context.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/request.hh"

namespace outboard::frontend::cuda {

namespace detail {

/// What the front-end remembers of a created object: of streams and events more than their context.
template <class... A>
std::unique_ptr<object> remember(A...) {
  return std::make_unique<object>();
}
std::unique_ptr<object> remember(CUstream*, unsigned flags);
std::unique_ptr<object> remember(CUstream*, unsigned flags, int priority);
std::unique_ptr<object> remember(CUevent*, unsigned flags);

/// Null pointers, dead handles: the driver's own codes.
template <class T>
CUresult check(const lane& own, const api::parameter& p, T argument) {
  if constexpr (api::handle_type<T>) {
    if constexpr (std::is_same_v<T, CUstream>)
      return stream_ok(own, argument) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    // Some kinds of handle are values to the driver.
    constexpr bool value = std::is_same_v<T, CUmemoryPool> || std::is_same_v<T, CUarray>;
    constexpr CUresult null = value ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    constexpr CUresult dead =
        std::is_same_v<T, CUmemoryPool> ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    if (!argument) return p.may_be_null ? CUDA_SUCCESS : null;
    if (wire::handle{value_of(argument)}.minted()) return CUDA_SUCCESS;  // the server knows
    if constexpr (std::is_same_v<T, CUfunction>) {  // a CUkernel is taken as a CUfunction
      if (find_object<object>(own, reinterpret_cast<CUkernel>(argument))) return CUDA_SUCCESS;
    }
    return find_object<object>(own, argument) ? CUDA_SUCCESS : dead;
  } else if constexpr (marshal::pointer_parameter<T>) {
    return argument || p.may_be_null ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  } else {
    return CUDA_SUCCESS;
  }
}

template <class T>
bool unknown_address(const lane& own, const api::parameter& p, T argument, std::uint64_t bytes) {
  if constexpr (std::is_same_v<T, CUdeviceptr>) {
    return p.dir == api::direction::at && !own.state().memory.addresses.covers(argument, bytes);
  }
  return false;
}

/// Bytes that a fill or copy touches from its address on: a fill that runs over the end of its block must get
/// the driver's own answer at once. 1 where the line has no such extent.
template <api::opcode Op, class... A>
std::uint64_t extent([[maybe_unused]] A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  std::uint64_t bytes = 1;
  if constexpr (about.extent != api::no_parameter) bytes = pick<about.extent>(arguments...);
  if constexpr (about.fill != api::no_parameter) bytes *= sizeof(pick<about.fill>(arguments...));
  if constexpr (about.rows != api::no_parameter) {
    const std::uint64_t height = pick<about.rows>(arguments...);
    bytes = height ? (height - 1) * pick<about.pitch>(arguments...) + bytes : 0;
  }
  return bytes ? bytes : 1;
}

/// What was recorded in a capture cannot be waited for outside, even when the capture is over.
template <api::opcode Op, class... A>
void note_record(const lane& own, [[maybe_unused]] A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  if constexpr (about.records != api::no_parameter) {
    if (auto* e = find_object<event_info>(own, pick<about.records>(arguments...)))
      e->captured.store(any_capture_open());
  }
}

template <api::opcode Op, class... A>
CUresult check_all(const lane& own, A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  std::size_t i = 0;
  CUresult code = CUDA_SUCCESS;
  ((code == CUDA_SUCCESS ? code = check(own, about.parameters[i], arguments) : code, ++i), ...);
  return code;
}

/// Records and waits of events that another process has too are executed before the call returns: the other
/// process may learn of the return in another way, and then waits or records itself.
template <class T>
bool between_processes(const lane& own, T argument) {
  if constexpr (std::is_same_v<T, CUevent>) {
    const auto* event = find_object<event_info>(own, argument);
    return event && (event->flags & CU_EVENT_INTERPROCESS);
  }
  return false;
}

template <api::opcode Op, class... A>
bool must_wait(const lane& own, A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  if (about.how == api::kind::call || own.state().connection.synchronous()) return true;
  if (about.unsafe && any_capture_open()) return true;  // the server says whether capture forbids it
  if ((between_processes(own, arguments) || ...)) return true;
  if (doubtful<Op>(own, arguments...)) return true;
  [[maybe_unused]] const std::uint64_t bytes = extent<Op>(arguments...);
  std::size_t i = 0;
  return ((unknown_address(own, about.parameters[i++], arguments, bytes)) || ...);
}

/// For waits and queries: what they ask about.
template <api::opcode Op, class... A>
auto question(const lane& own, A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  if constexpr (about.asks != api::completion::none) {
    return idle_question::of(own, arguments..., about.per_thread);
  } else {
    return std::monostate{};
  }
}

/// Copies within device memory: how they take their place among the rest.
template <api::opcode Op, class... A>
constexpr marshal::flavour flavour_of() {
  using enum marshal::flavour;
  constexpr bool per_thread = api::function<Op>::about.per_thread;
  if ((std::is_same_v<A, CUstream> || ...)) return per_thread ? stream_per_thread : stream;
  return per_thread ? sync_per_thread : sync;
}

inline std::optional<CUresult> copied_on_other_device(marshal::flavour how, CUdeviceptr to, CUdeviceptr from,
                                                      std::size_t size, CUstream stream = nullptr) {
  return copy_on_other_device(to, from, size, stream, how);
}

/// The first check of calls on an object alone.
template <class T>
CUresult check_object(T argument) {
  if constexpr (std::is_same_v<T, CUevent> || std::is_same_v<T, CUstream>) {
    return argument ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  } else if constexpr (std::is_same_v<T, float*>) {
    return argument ? CUDA_SUCCESS
                    : CUDA_ERROR_INVALID_HANDLE;  // as driver 580 says, of a missing output too
  }
  return CUDA_SUCCESS;
}

template <class T>
CUresult check_object_context(const lane& own, T argument) {
  if constexpr (std::is_same_v<T, CUevent> || std::is_same_v<T, CUstream>)
    return state_of_context(own, argument);
  return CUDA_SUCCESS;
}

/// An event that the context did not take into its next life.
template <class T>
bool late_event(const lane& own, T argument) {
  if constexpr (std::is_same_v<T, CUevent>) {
    const object* found = find_object<object>(own, argument);
    return found && found->late.load(std::memory_order_relaxed);
  }
  return false;
}

/// Destroyed handles die here at once; what the server makes of it cannot change that.
template <api::opcode Op, class... A>
void release_destroyed(const lane& own, A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  if constexpr (about.destroys != api::no_parameter) {
    auto handle = pick<about.destroys>(arguments...);
    own.state().handles[api::handle_trait<decltype(handle)>::kind].release(value_of(handle));
  }
}

/// Waits for the reply and gives its outputs to the program.
template <api::opcode Op, class... A>
CUresult ask(raw_request& r, A... arguments) {
  const CUresult code = r.call();
  if (code != CUDA_SUCCESS) return code;
  wire::reader outputs = r.reply();
  return marshal::decode_reply<Op>(outputs, arguments...) ? code : r.malformed();
}

}  // namespace detail

template <api::opcode Op, class... A>
CUresult remote(A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  lane& own = this_lane();
  process& p = own.state();
  if constexpr (about.of_object) {
    CUresult code = CUDA_SUCCESS;
    ((code == CUDA_SUCCESS ? code = detail::check_object(arguments) : code), ...);
    if (code != CUDA_SUCCESS) return code;
  }
  if (const CUresult code = p.connection.gate(about, own); code != CUDA_SUCCESS) return code;
  if (const CUresult code = detail::check_all<Op>(own, arguments...); code != CUDA_SUCCESS) return code;
  if constexpr (about.of_object) {
    CUresult code = CUDA_SUCCESS;
    ((code == CUDA_SUCCESS ? code = detail::check_object_context(own, arguments) : code), ...);
    if (code != CUDA_SUCCESS) return code;
  }
  if ((detail::late_event(own, arguments) || ...)) return CUDA_ERROR_INVALID_HANDLE;
  if constexpr (about.copies) {
    if (const auto code = detail::copied_on_other_device(detail::flavour_of<Op, A...>(), arguments...))
      return *code;
  }
  [[maybe_unused]] auto idle = detail::question<Op>(own, arguments...);
  if constexpr (about.asks != api::completion::none) {
    if (idle.known_idle()) return CUDA_SUCCESS;
  }
  raw_request r(Op, own);
  std::uint64_t created = 0;
  if constexpr (about.creates != api::no_parameter) {
    using handle = std::remove_pointer_t<decltype(detail::pick<about.creates>(arguments...))>;
    std::unique_ptr<object> info = detail::remember(arguments...);
    info->context = own.context_handle();
    created = p.handles[api::handle_trait<handle>::kind].reserve(std::move(info));
    if (!created) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  marshal::encode_request<Op>(r.body(), created, arguments...);
  detail::note_record<Op>(own, arguments...);
  const CUresult code =
      detail::must_wait<Op>(own, arguments...) ? detail::ask<Op>(r, arguments...) : r.post();
  if constexpr (about.creates != api::no_parameter) {
    auto out = detail::pick<about.creates>(arguments...);
    using handle = std::remove_pointer_t<decltype(out)>;
    if (code == CUDA_SUCCESS) {
      *out = reinterpret_cast<handle>(created);
    } else {
      p.handles[api::handle_trait<handle>::kind].release(created);
    }
  }
  if (code == CUDA_SUCCESS) detail::release_destroyed<Op>(own, arguments...);
  if constexpr (about.asks != api::completion::none) {
    if (code == CUDA_SUCCESS) idle.now_idle();
  }
  return code;
}

}  // namespace outboard::frontend::cuda
