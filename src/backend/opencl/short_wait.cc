#include "backend/opencl/short_wait.hh"

#include "backend/opencl/questions.hh"
#include "backend/patience.hh"
#include "backend/session_core.hh"

namespace outboard::backend::opencl {
namespace {

void flush(const api::opencl::function_table& table, std::span<const cl_event> events) {
  cl_command_queue last = nullptr;
  for (const cl_event event : events) {
    const auto queue = value_of<cl_command_queue>([&](std::size_t size, void* to, std::size_t* wanted) {
      return table.clGetEventInfo(event, CL_EVENT_COMMAND_QUEUE, size, to, wanted);
    });
    // The program's own events have none.
    if (queue && *queue && *queue != last) table.clFlush(last = *queue);
  }
}

}  // namespace

std::optional<cl_int> status_of(const api::opencl::function_table& table, cl_event event) {
  return value_of<cl_int>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, size, to, wanted);
  });
}

bool complete_soon(call& c, std::span<const cl_event> events) {
  const auto budget = [&] { return c.session.patience(); };
  if (budget().count() == 0) return false;
  const api::opencl::function_table& table = own(c).table();
  flush(table, events);
  std::size_t complete = 0;
  spin_while(budget, [&] {
    for (; complete < events.size(); ++complete) {
      const auto status = status_of(table, events[complete]);
      if (!status) return false;
      if (*status > CL_COMPLETE) return true;
    }
    return false;
  });
  return complete == events.size();
}

bool finished_soon(call& c, cl_command_queue queue) {
  const api::opencl::function_table& table = own(c).table();
  cl_event end = nullptr;
  if (c.session.patience().count() == 0 || !table.clEnqueueMarkerWithWaitList ||
      table.clEnqueueMarkerWithWaitList(queue, 0, nullptr, &end) != CL_SUCCESS)
    return false;
  const bool soon = complete_soon(c, {&end, 1});
  table.clReleaseEvent(end);
  return soon;
}

}  // namespace outboard::backend::opencl
