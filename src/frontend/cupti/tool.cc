#include "frontend/cupti/tool.hh"

#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "api/cuda/functions.hh"
#include "api/cupti/names.hh"
#include "base/steady.hh"
#include "frontend/context.hh"
#include "frontend/cuda/copying/host_order.hh"
#include "frontend/cupti/allocations.hh"
#include "frontend/cupti/functions.hh"
#include "frontend/lane.hh"
#include "frontend/process.hh"

namespace outboard::frontend::cupti {
namespace {

CUcontext current(const lane& own) { return reinterpret_cast<CUcontext>(own.context_handle()); }

/// What this thread's call is about to release or destroy, remembered until it returns, because the books
/// have it no more then.
thread_local std::variant<std::monostate, memory_block, known_pool> ending_here;

/// This thread's call began after the driver's start: of earlier ones, cuInit among them, CUPTI records
/// nothing (12.8 and 13.0, observed).
thread_local constinit bool driver_was_there = false;

template <class T>
std::optional<T> take_ended() {
  auto ended = std::exchange(ending_here, {});
  T* const wanted = std::get_if<T>(&ended);
  return wanted ? std::optional<T>(std::move(*wanted)) : std::nullopt;
}

}  // namespace

tool_of_program& tool_of_program::instance() {
  static tool_of_program* const one = new tool_of_program;
  return *one;
}

tool_of_program::tool_of_program() {
  cuda::observe_runtime_calls(runtime_called);
  frontend::tool.store(this);
}

void tool_of_program::refresh() {
  const bool any = activities.any() || callbacks.any();
  watch_calls(call_watcher::tool, any);
  const bool annotations = markers.wants_annotations() || markers.wants_annotation_calls();
  annotation_tool.store(annotations ? &markers : nullptr, std::memory_order_release);
  // While anything is wanted each call of the runtime is told, because calls of the driver in it belong to
  // it.
  for (std::uint32_t f = 1; f < api::cupti::callback_count(api::cupti::domain::runtime); ++f)
    cuda::want_runtime_call(f, any);
}

/// `data` says what the call alone knows.
void tool_of_program::tell(const lane& own, bool runtime, std::uint32_t function, CUpti_CallbackData data) {
  data.context = current(own);
  data.contextUid = numbers.of_context(own.context_handle());
  callbacks.tell(runtime, function, data);
}

void tool_of_program::tell_of(const lane& own, tool_call& call, std::uint32_t function) {
  if (!callbacks.wants(false, function)) return;
  CUpti_CallbackData data{};
  data.callbackSite = call.result ? CUPTI_API_EXIT : CUPTI_API_ENTER;
  data.functionName = call.name;
  data.functionParams = call.parameters;
  data.functionReturnValue = call.result;
  data.correlationId = call.number;
  data.correlationData = &call.of_tool;
  tell(own, false, function, data);
}

void tool_of_program::tell_of(const lane& own, const cuda::runtime_call& call, std::uint32_t function,
                              std::uint32_t number) {
  if (!callbacks.wants(true, function)) return;
  CUpti_CallbackData data{};
  data.callbackSite = call.returns ? CUPTI_API_EXIT : CUPTI_API_ENTER;
  data.functionName = call.name;
  data.functionParams = call.parameters;
  data.functionReturnValue = call.returns ? call.result : nullptr;
  data.symbolName = call.symbol;
  data.correlationId = number;
  data.correlationData = call.of_tool;
  tell(own, true, function, data);
}

void tool_of_program::entered(lane& own, tool_call& call) {
  const function_traits& f = traits_of(call.function);
  driver_was_there = process::instance().usable();
  if (f.leaves_work && activities.any()) {
    const std::uint32_t context = numbers.of_context(own.context_handle());
    const std::uint32_t stream = numbers.of_stream(context, call.stream, api::per_thread(call.name));
    bool pageable = false;
    if (f.host_argument != 0) {
      const auto* const arguments = static_cast<const std::uint64_t*>(call.parameters);
      pageable = !cuda::page_locked(arguments[f.host_argument - 1], 1);
    }
    place where{context, stream, f.async, f.one_copy, 0, pageable};
    if (f.launches_graph) where.graph = numbers.of_graph(*static_cast<void* const*>(call.parameters));
    activities.note_work(call.number, where);
  }
  if (f.releases && activities.wants_memory()) {
    if (auto block = released_by(call)) ending_here = std::move(*block);
  }
  if (f.pool == pool_change::destroys && activities.wants_pools())
    ending_here = known_pool_at(*static_cast<const std::uint64_t*>(call.parameters));
  if (f.ends != 0 && callbacks.wants_resource(f.ends)) {
    const bool stream = f.ends == CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING;
    const void* const first = *static_cast<void* const*>(call.parameters);
    callbacks.tell_resource(f.ends, stream ? current(own) : static_cast<CUcontext>(const_cast<void*>(first)),
                            stream ? static_cast<CUstream>(const_cast<void*>(first)) : nullptr);
  }
  tell_of(own, call, f.callback);
  if (callbacks.wants_graphs()) graph_events_.entered(own, call, f);
  if (f.unloads_module) tell_of_module(own, call, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING);
}

/// Of one that is there.
void tool_of_program::tell_of_module(const lane& own, const tool_call& call, std::uint32_t event) {
  if (!callbacks.wants_resource(event)) return;
  const void* module = *static_cast<const void* const*>(call.parameters);
  if (event == CUPTI_CBID_RESOURCE_MODULE_LOADED) module = *static_cast<const void* const*>(module);
  CUpti_ModuleResourceData about{};
  about.moduleId = numbers.of_module(module);
  callbacks.tell_resource(event, current(own), about);
}

/// A context is told of when a thread has it first, a stream when it has been made.
void tool_of_program::tell_of_new(const lane& own, const tool_call& call, std::uint8_t begins) {
  if (const CUcontext context = current(own); context && numbers.is_new_context(own.context_handle()))
    callbacks.tell_resource(CUPTI_CBID_RESOURCE_CONTEXT_CREATED, context, nullptr);
  if (begins == 0 || *static_cast<const CUresult*>(call.result) != CUDA_SUCCESS) return;
  const bool stream = begins == CUPTI_CBID_RESOURCE_STREAM_CREATED;
  callbacks.tell_resource(begins, current(own),
                          stream ? **static_cast<CUstream* const*>(call.parameters) : nullptr);
}

void tool_of_program::tell_of_wait(const lane& own, const tool_call& call, std::uint8_t type) {
  if (type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE)
    callbacks.tell_wait(CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED, current(own),
                        static_cast<CUstream>(const_cast<void*>(call.stream)));
  if (type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE)
    callbacks.tell_wait(CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED, current(own), nullptr);
}

void tool_of_program::note_memory(const lane& own, const tool_call& call, const made_call& made,
                                  const memory_block& block) {
  const function_traits& f = traits_of(call.function);
  shown_memory shown{f.releases, f.async, block, 0, made.number};
  shown.context = numbers.of_context(block.context ? block.context : own.context_handle());
  if (f.async)
    shown.stream =
        numbers.of_stream(numbers.of_context(own.context_handle()), call.stream, api::per_thread(call.name));
  activities.note_memory(made.begin, std::move(shown));
}

void tool_of_program::note_wait(const lane& own, const tool_call& call, const made_call& made) {
  const function_traits& f = traits_of(call.function);
  noted_wait wait;
  wait.type = f.synchronizes;
  wait.call = made;
  wait.context = numbers.of_context(own.context_handle());
  const bool whole = f.synchronizes == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  wait.stream =
      whole ? ~std::uint32_t{0} : numbers.of_stream(wait.context, call.stream, api::per_thread(call.name));
  if (f.waited_event != 0)
    wait.event = numbers.of_event(static_cast<const void* const*>(call.parameters)[f.waited_event - 1]);
  activities.note_wait(wait);
}

void tool_of_program::note_pool(const tool_call& call, const made_call& made, pool_change what) {
  const auto* const arguments = static_cast<const std::uint64_t*>(call.parameters);
  shown_pool shown;
  shown.call = made.number;
  switch (what) {
    case pool_change::creates:
    case pool_change::imports:
      shown.operation = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED;
      shown.handle = *reinterpret_cast<const std::uint64_t*>(arguments[0]);
      break;
    case pool_change::destroys:
      shown.operation = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED;
      shown.handle = arguments[0];
      break;
    default:
      shown.operation = CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED;
      shown.handle = arguments[0];
      shown.kept = arguments[1];
  }
  const auto pool = what == pool_change::destroys ? take_ended<known_pool>().value_or(known_pool{})
                                                  : known_pool_at(shown.handle);
  shown.device = pool.device;
  shown.imported = pool.imported;
  activities.note_pool(made.begin, shown);
}

void tool_of_program::note_context(lane& own) {
  const context_state* const context = own.owner();
  const std::uint32_t round = activities.context_round();
  if (!context || (own.tool.noted_context == context->handle && own.tool.context_round == round)) return;
  own.tool.noted_context = context->handle;
  own.tool.context_round = round;
  const std::uint32_t number = numbers.of_context(context->handle);
  activities.note_context(
      {number, static_cast<std::uint32_t>(context->device), numbers.of_stream(number, nullptr, false)});
}

void tool_of_program::left(lane& own, tool_call& call) {
  const function_traits& f = traits_of(call.function);
  const made_call made{false,
                       f.callback,
                       call.number,
                       steady_nanoseconds(call.begin),
                       steady_nanoseconds(call.end),
                       static_cast<std::uint32_t>(*static_cast<const CUresult*>(call.result))};
  if (driver_was_there && runtime_call_of(own) == 0 && activities.wants_call(false, f.callback))
    activities.note_call(own, made);
  if (f.synchronizes != 0 && activities.any()) note_wait(own, call, made);
  if (f.records_event && made.result == CUDA_SUCCESS && activities.wants_events()) {
    const std::uint32_t context = numbers.of_context(own.context_handle());
    activities.note_event({made.number, context,
                           numbers.of_stream(context, call.stream, api::per_thread(call.name)),
                           numbers.of_event(*static_cast<const void* const*>(call.parameters)),
                           own.owner() ? static_cast<std::uint32_t>(own.owner()->device) : 0});
  }
  if (f.pool != pool_change::none && made.result == CUDA_SUCCESS && activities.wants_pools())
    note_pool(call, made, f.pool);
  if ((f.allocates || f.releases) && activities.wants_memory()) {
    const auto block = f.allocates && made.result == CUDA_SUCCESS ? allocated_by(call)
                       : f.releases                               ? take_ended<memory_block>()
                                                                  : std::nullopt;
    if (block && made.result == CUDA_SUCCESS) note_memory(own, call, made, *block);
  }
  if (callbacks.any()) {
    tell_of_new(own, call, f.begins);
    if (callbacks.wants_graphs()) graph_events_.left(own, call, f);
    if (f.loads_module && made.result == CUDA_SUCCESS)
      tell_of_module(own, call, CUPTI_CBID_RESOURCE_MODULE_LOADED);
    if (f.synchronizes != 0 && made.result == CUDA_SUCCESS) tell_of_wait(own, call, f.synchronizes);
  }
  if (activities.wants_contexts()) note_context(own);
  tell_of(own, call, f.callback);
}

void tool_of_program::runtime_called(std::uint32_t function, const cuda::runtime_call& call) {
  lane& own = this_lane();
  tool_of_program& self = instance();
  call.returns ? self.runtime_left(own, function, call) : self.runtime_entered(own, function, call);
}

void tool_of_program::runtime_entered(lane& own, std::uint32_t function, const cuda::runtime_call& call) {
  // A call inside a call stands deeper in the stack; one whose end was not told stands there no more.
  if (runtime_call_of(own) != 0 && static_cast<const void*>(&call) < own.tool.runtime_frame) return;
  own.tool.runtime_call = next_call_number();
  own.tool.runtime_watch = tool_watch.load(std::memory_order_relaxed);
  own.tool.runtime_frame = &call;
  tell_of(own, call, function, own.tool.runtime_call);
  own.tool.runtime_begin = steady_nanoseconds();
}

void tool_of_program::runtime_left(lane& own, std::uint32_t function, const cuda::runtime_call& call) {
  const std::uint32_t number = runtime_call_of(own);
  if (number == 0 || own.tool.runtime_frame != &call) return;
  own.tool.runtime_call = 0;
  own.tool.runtime_frame = nullptr;
  if (activities.wants_call(true, function))
    activities.note_call(own, {true, function, number, own.tool.runtime_begin, steady_nanoseconds(),
                               static_cast<std::uint32_t>(call.result ? *call.result : 0)});
  tell_of(own, call, function, number);
}

}  // namespace outboard::frontend::cupti
