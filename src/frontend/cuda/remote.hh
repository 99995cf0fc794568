// The generated end of a CALL or POST line: checks what can be known here, encodes, sends, decodes.
#pragma once

#include <variant>

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/copying/copies.hh"
#include "frontend/cuda/copying/elsewhere.hh"
#include "frontend/cuda/doubt.hh"
#include "frontend/cuda/idle.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/own_context.hh"
#include "frontend/cuda/requests.hh"
#include "marshal/request.hh"

namespace outboard::frontend::cuda {

namespace detail {

/// What the front-end remembers of a created object; specialised where it is more than its context.
template <api::opcode Op, class... A>
std::unique_ptr<object> remember(A...) {
  return std::make_unique<object>();
}
template <>
std::unique_ptr<object> remember<api::opcode::cuStreamCreate, CUstream*, unsigned>(CUstream*, unsigned flags);
template <>
std::unique_ptr<object> remember<api::opcode::cuStreamCreateWithPriority, CUstream*, unsigned, int>(
    CUstream*, unsigned flags, int priority);
template <>
std::unique_ptr<object> remember<api::opcode::cuEventCreate, CUevent*, unsigned>(CUevent*, unsigned flags);

/// Null pointers, dead handles: the driver's own codes.
template <class T>
CUresult check(const api::parameter& p, T argument) {
  if constexpr (api::handle_type<T>) {
    if constexpr (std::is_same_v<T, CUstream>)
      return stream_ok(argument) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
    // Some kinds of handle are values to the driver.
    constexpr bool value = std::is_same_v<T, CUmemoryPool> || std::is_same_v<T, CUarray>;
    constexpr CUresult null = value ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    constexpr CUresult dead =
        std::is_same_v<T, CUmemoryPool> ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    if (!argument) return p.may_be_null ? CUDA_SUCCESS : null;
    if (wire::handle{value_of(argument)}.minted()) return CUDA_SUCCESS;  // the server knows
    if constexpr (std::is_same_v<T, CUfunction>) {  // a CUkernel is taken as a CUfunction
      if (find_object<object>(reinterpret_cast<CUkernel>(argument))) return CUDA_SUCCESS;
    }
    return find_object<object>(argument) ? CUDA_SUCCESS : dead;
  } else if constexpr (marshal::pointer_parameter<T>) {
    return argument || p.may_be_null ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  } else {
    return CUDA_SUCCESS;
  }
}

template <class T>
bool unknown_address(const api::parameter& p, T argument, std::uint64_t bytes) {
  if constexpr (std::is_same_v<T, CUdeviceptr>) {
    return p.dir == api::direction::at && !process::instance().memory().addresses().covers(argument, bytes);
  }
  return false;
}

/// Bytes that a fill or copy touches from its address on: a fill that runs over the end of its block must get
/// the driver's own answer at once. 1 where the line has no such extent.
template <api::opcode Op, class... A>
std::uint64_t extent(A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  const std::array<std::uint64_t, sizeof...(A) + 1> values{marshal::counting_value(arguments)..., 0};
  [[maybe_unused]] const auto value = [&](std::string_view parameter) {
    const std::size_t i = api::detail::index_of(about, parameter);
    return i == api::no_parameter ? std::uint64_t{1} : values[i];
  };
  std::uint64_t bytes = 1;
  if constexpr (about.leaves == api::left_work::fills) {
    if constexpr (fills_rows<A...>) {
      const std::uint64_t height = value("Height");
      bytes = height ? (height - 1) * value("dstPitch") + value("Width") * filled_with<A...> : 0;
    } else {
      bytes = value("N") * filled_with<A...>;
    }
  } else if constexpr (about.leaves == api::left_work::copies) {
    bytes = value("ByteCount");
  }
  return bytes ? bytes : 1;
}

template <std::size_t I, class... A>
auto pick(A... arguments) {
  return std::get<I>(std::tuple<A...>(arguments...));
}

template <api::opcode Op, class... A>
CUresult check_all(A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  std::size_t i = 0;
  CUresult code = CUDA_SUCCESS;
  ((code == CUDA_SUCCESS ? code = check(about.parameters[i], arguments) : code, ++i), ...);
  return code;
}

/// Records and waits of events that another process has too are executed before the call returns: the other
/// process hears of the return by ways of its own, and then waits or records itself.
template <class T>
bool between_processes(T argument) {
  if constexpr (std::is_same_v<T, CUevent>) {
    const auto* event = find_object<event_info>(argument);
    return event && (event->flags & CU_EVENT_INTERPROCESS);
  }
  return false;
}

template <api::opcode Op, class... A>
bool must_wait(A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  if (about.how == api::kind::call || process::instance().synchronous()) return true;
  if (about.unsafe && any_capture_open()) return true;  // the server says whether capture forbids it
  if ((between_processes(arguments) || ...)) return true;
  if (doubtful<Op>(arguments...)) return true;
  [[maybe_unused]] const std::uint64_t bytes = extent<Op>(arguments...);
  std::size_t i = 0;
  return ((unknown_address(about.parameters[i++], arguments, bytes)) || ...);
}

/// For waits and queries: what they ask about.
template <api::opcode Op, class... A>
auto question(const lane& own, A... arguments) {
  if constexpr (api::function<Op>::about.asks) {
    return idle_question::of(own, arguments..., api::per_thread(api::function<Op>::name));
  } else {
    return std::monostate{};
  }
}

/// Copies within device memory: how they take their place among the rest.
template <api::opcode Op>
constexpr std::optional<marshal::flavour> copies_device_memory() {
  constexpr const api::description& about = api::function<Op>::about;
  constexpr bool per_thread = api::per_thread(api::function<Op>::name);
  if (about.doubts != api::doubt::other_device) return std::nullopt;
  if (about.settles) return per_thread ? marshal::flavour::sync_per_thread : marshal::flavour::sync;
  return per_thread ? marshal::flavour::stream_per_thread : marshal::flavour::stream;
}

inline std::optional<CUresult> elsewhere(marshal::flavour how, CUdeviceptr to, CUdeviceptr from,
                                         std::size_t size, CUstream stream = nullptr) {
  return copy_elsewhere(to, from, size, stream, how);
}

/// Of calls on an object alone (`of_object`): its handle is looked at even before cuInit, and its context
/// must be alive.
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
CUresult check_object_context(T argument) {
  if constexpr (std::is_same_v<T, CUevent> || std::is_same_v<T, CUstream>) return state_of_context(argument);
  return CUDA_SUCCESS;
}

/// An event that the context did not take into its next life.
template <class T>
bool late_event(T argument) {
  if constexpr (std::is_same_v<T, CUevent>) {
    const object* found = find_object<object>(argument);
    return found && found->late.load(std::memory_order_relaxed);
  }
  return false;
}

/// The device's address of memory of the program's own, where it is another one.
template <class... A>
bool writes_alias(CUdeviceptr to, A...) {
  if (!host_memory_in_use()) return false;
  const auto block = process::instance().memory().addresses().find(to);
  return block && block->kind == memory_kind::alias;
}

/// What came to be in memory that is kept twice is fetched; where both sides have the same pages the server
/// has waited.
template <class... A>
CUresult finish_of_host(lane& own, bool per_thread, CUdeviceptr to, A...) {
  const auto block = process::instance().memory().addresses().find(to);
  if (!block || !names_host(block->kind) || same_pages(to)) return CUDA_SUCCESS;
  return finish(own, per_thread ? marshal::flavour::sync_per_thread : marshal::flavour::sync);
}

/// A call, its outputs, and what must be over when it returns.
template <api::opcode Op, class... A>
CUresult wait_for(lane& own, request& r, A... arguments) {
  CUresult code = r.call();
  if (code != CUDA_SUCCESS) return code;
  wire::reader outputs = r.reply();
  if (!marshal::decode_reply<Op>(outputs, arguments...)) return r.malformed();
  if constexpr (api::function<Op>::about.settles) {
    code = finish_of_host(own, api::per_thread(api::function<Op>::name), arguments...);
  }
  return code;
}

/// Destroyed handles die here at once; what the server makes of it cannot change that.
template <api::opcode Op, class... A>
void release_destroyed(A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  if constexpr (about.destroys != api::no_parameter) {
    auto handle = pick<about.destroys>(arguments...);
    process::instance()
        .objects()
        .handles(api::handle_trait<decltype(handle)>::kind)
        .release(value_of(handle));
  }
}

}  // namespace detail

template <api::opcode Op, class... A>
CUresult remote(A... arguments) {
  constexpr const api::description& about = api::function<Op>::about;
  process& p = process::instance();
  lane& own = this_lane();
  if constexpr (about.of_object) {
    CUresult code = CUDA_SUCCESS;
    ((code == CUDA_SUCCESS ? code = detail::check_object(arguments) : code), ...);
    if (code != CUDA_SUCCESS) return code;
  }
  if (const CUresult code = p.gate(about, own); code != CUDA_SUCCESS) return code;
  if (const CUresult code = detail::check_all<Op>(arguments...); code != CUDA_SUCCESS) return code;
  if constexpr (about.of_object) {
    CUresult code = CUDA_SUCCESS;
    ((code == CUDA_SUCCESS ? code = detail::check_object_context(arguments) : code), ...);
    if (code != CUDA_SUCCESS) return code;
  }
  if ((detail::late_event(arguments) || ...)) return CUDA_ERROR_INVALID_HANDLE;
  if constexpr (constexpr auto how = detail::copies_device_memory<Op>(); how.has_value()) {
    if (const auto code = detail::elsewhere(*how, arguments...)) return *code;
  }
  [[maybe_unused]] auto idle = detail::question<Op>(own, arguments...);
  if constexpr (about.asks) {
    if (idle.known_idle()) return CUDA_SUCCESS;
  }
  request r(Op, own);
  std::uint64_t created = 0;
  if constexpr (about.creates != api::no_parameter) {
    using handle = std::remove_pointer_t<decltype(detail::pick<about.creates>(arguments...))>;
    std::unique_ptr<object> info = detail::remember<Op>(arguments...);
    info->context = own.context_handle();
    created = p.objects().handles(api::handle_trait<handle>::kind).reserve(std::move(info));
    if (!created) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  marshal::encode_request<Op>(r.body(), created, arguments...);
  CUresult code = CUDA_SUCCESS;
  bool waits = detail::must_wait<Op>(arguments...);
  if constexpr (about.settles) waits = waits || detail::writes_alias(arguments...);
  if (waits) {
    code = detail::wait_for<Op>(own, r, arguments...);
  } else {
    code = r.post();
  }
  if constexpr (about.creates != api::no_parameter) {
    auto out = detail::pick<about.creates>(arguments...);
    using handle = std::remove_pointer_t<decltype(out)>;
    if (code == CUDA_SUCCESS) {
      *out = reinterpret_cast<handle>(created);
    } else {
      p.objects().handles(api::handle_trait<handle>::kind).release(created);
    }
  }
  if (code == CUDA_SUCCESS) detail::release_destroyed<Op>(arguments...);
  if constexpr (about.asks) {
    if (code == CUDA_SUCCESS) idle.now_idle();
  }
  return code;
}

}  // namespace outboard::frontend::cuda
