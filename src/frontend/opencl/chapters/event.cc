#include <array>

#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl::ends {
namespace {

/// What the device says; kept once it is final.
cl_int ask_status(cl_event event, event_info& info, cl_int& status) {
  status = info.status.load();
  if (status <= CL_COMPLETE) return CL_SUCCESS;
  if (!info.queue.get()) return CL_SUCCESS;  // a user event: the program says it
  message m(opcode::clGetEventInfo);
  marshal::put_body(m.body(),
                    marshal::opencl::question_body{id_of(event), 0, CL_EVENT_COMMAND_EXECUTION_STATUS, {}});
  const cl_int code = m.call();
  if (code < 0 && code != CL_DEVICE_NOT_AVAILABLE) {
    // The command could not even be given to the device: that is how it ended.
    info.status.store(status = code);
    return CL_SUCCESS;
  }
  if (code != CL_SUCCESS) return code;
  wire::reader reply = m.reply();
  status = reply.get<cl_int>();
  if (status <= CL_COMPLETE) info.status.store(status);
  return reply.finished() ? CL_SUCCESS : m.malformed();
}

}  // namespace

cl_int clWaitForEvents(cl_uint count, const cl_event* events) {
  if (count == 0 || !events) return CL_INVALID_VALUE;
  const auto* const first = find<event_info>(events[0]);
  for (cl_uint i = 0; i < count; ++i) {
    const auto* const info = find<event_info>(events[i]);
    if (!info || !first) return CL_INVALID_EVENT;
    if (info->context.get() != first->context.get()) return CL_INVALID_CONTEXT;
  }
  const at_home here(cell_of(events[0]));
  return remote<opcode::clWaitForEvents>(0, count, wire_list(events, count).data());
}

cl_event clCreateUserEvent(cl_context context, cl_int* errcode_ret) {
  if (!alive(context)) return fail(errcode_ret, CL_INVALID_CONTEXT);
  auto info = std::make_unique<event_info>();
  info->context = needed(context);
  info->status.store(CL_SUBMITTED);
  return create<cl_event>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    return remote<opcode::clCreateUserEvent>(id, context, static_cast<cl_int*>(nullptr));
  });
}

cl_int clRetainEvent(cl_event event) { return retain(event); }
cl_int clReleaseEvent(cl_event event) { return release(event); }

cl_int clSetUserEventStatus(cl_event event, cl_int status) {
  auto* const info = find<event_info>(event);
  if (!info || info->queue.get()) return CL_INVALID_EVENT;
  if (status > CL_COMPLETE) return CL_INVALID_VALUE;
  cl_int open = CL_SUBMITTED;
  if (!info->status.compare_exchange_strong(open, status)) return CL_INVALID_OPERATION;
  return remote<opcode::clSetUserEventStatus>(0, event, status);
}

cl_int clGetEventInfo(cl_event event, cl_event_info name, std::size_t size, void* value,
                      std::size_t* wanted) {
  auto* const info = find<event_info>(event);
  if (!info) return CL_INVALID_EVENT;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_EVENT_COMMAND_QUEUE:
      return to.one(info->queue.get());
    case CL_EVENT_CONTEXT:
      return to.one(info->context.get());
    case CL_EVENT_COMMAND_TYPE:
      return to.one(info->type);
    case CL_EVENT_REFERENCE_COUNT:
      return to.one(references(event));
    case CL_EVENT_COMMAND_EXECUTION_STATUS: {
      cl_int status = CL_QUEUED;
      if (value && size < sizeof status) return CL_INVALID_VALUE;
      const cl_int code = ask_status(event, *info, status);
      return code == CL_SUCCESS ? to.one(status) : code;
    }
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clSetEventCallback(cl_event event, cl_int status,
                          void(CL_CALLBACK* pfn_notify)(cl_event, cl_int, void*), void* user_data) {
  auto* const info = find<event_info>(event);
  if (!info) return CL_INVALID_EVENT;
  if (!pfn_notify || (status != CL_COMPLETE && status != CL_RUNNING && status != CL_SUBMITTED))
    return CL_INVALID_VALUE;
  link& l = link::instance();
  session* const server = l.server();
  if (!server) return CL_DEVICE_NOT_AVAILABLE;
  const std::uint64_t number = l.functions().add(
      *server, [=, kept = needed(event)](std::int32_t reached) { pfn_notify(event, reached, user_data); });
  server->expect_callbacks(1);
  message m(opcode::clSetEventCallback);
  marshal::put_body(m.body(), marshal::opencl::event_callback_body{id_of(event), number, status});
  return m.awaited().post();
}

/// The times are there once the command is complete, and stay: they are asked for together.
cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info name, std::size_t size, void* value,
                               std::size_t* wanted) {
  auto* const info = find<event_info>(event);
  if (!info) return CL_INVALID_EVENT;
  const auto* const queue = find<queue_info>(info->queue.get());
  if (!queue || (queue->bits & CL_QUEUE_PROFILING_ENABLE) == 0) return CL_PROFILING_INFO_NOT_AVAILABLE;
  if (name < CL_PROFILING_COMMAND_QUEUED || name > CL_PROFILING_COMMAND_COMPLETE) return CL_INVALID_VALUE;
  if (value && size < sizeof(cl_ulong)) return CL_INVALID_VALUE;
  const std::lock_guard lock(info->mutex);
  if (!info->times_known) {
    message m(opcode::clGetEventProfilingInfo);
    marshal::put_body(m.body(), marshal::opencl::question_body{id_of(event), 0, name, {}});
    if (const cl_int code = m.call(); code != CL_SUCCESS) return code;
    wire::reader reply = m.reply();
    for (cl_ulong& time : info->times) time = reply.get<cl_ulong>();
    if (!reply.finished()) return m.malformed();
    info->times_known = true;
  }
  return asked{size, value, wanted}.one(info->times[name - CL_PROFILING_COMMAND_QUEUED]);
}

}  // namespace outboard::frontend::opencl::ends
