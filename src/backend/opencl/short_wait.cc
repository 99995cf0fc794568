#include "backend/opencl/short_wait.hh"

#include "backend/opencl/questions.hh"
#include "backend/session/patience.hh"
#include "backend/session/session_core.hh"

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

bool in_order(const api::opencl::function_table& table, cl_command_queue queue) {
  const auto bits =
      value_of<cl_command_queue_properties>([&](std::size_t size, void* to, std::size_t* wanted) {
        return table.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, size, to, wanted);
      });
  return bits && !(*bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
}

}  // namespace

std::optional<cl_int> status_of(const api::opencl::function_table& table, cl_event event) {
  return value_of<cl_int>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, size, to, wanted);
  });
}

bool is_over(const api::opencl::function_table& table, cl_event event) {
  return status_of(table, event).value_or(CL_COMPLETE) <= CL_COMPLETE;
}

bool complete_soon(call& c, std::span<const cl_event> events) {
  const auto budget = [&] { return c.core.patience(); };
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

void complete_in_a_moment(const api::opencl::function_table& table, cl_event event) {
  flush(table, {&event, 1});
  const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(500);
  while (!is_over(table, event) && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

bool finished_soon(call& c, cl_command_queue queue) {
  const api::opencl::function_table& table = own(c).table();
  if (c.core.patience().count() == 0) return false;
  // A marker behind a transfer costs as much as the transfer where another engine carries that out: 9 us.
  cl_event end = in_order(table, queue) ? own(c).newest_of(queue) : nullptr;
  if (!end && (!table.clEnqueueMarkerWithWaitList ||
               table.clEnqueueMarkerWithWaitList(queue, 0, nullptr, &end) != CL_SUCCESS))
    return false;
  const bool soon = complete_soon(c, {&end, 1});
  table.clReleaseEvent(end);
  return soon;
}

}  // namespace outboard::backend::opencl
