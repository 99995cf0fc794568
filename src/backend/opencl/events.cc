// Events: what only the device knows of them.
#include <array>

#include "backend/opencl/ends.hh"

namespace outboard::backend::opencl {
namespace {

using namespace marshal::opencl;

struct watched {
  session* told;
  std::uint64_t number;
  static void CL_CALLBACK reached(cl_event, cl_int status, void* data) {
    const std::unique_ptr<watched> mine(static_cast<watched*>(data));
    mine->told->tell_event(mine->number, status);
  }
};

}  // namespace

namespace ends {

/// CL_EVENT_COMMAND_EXECUTION_STATUS alone: everything else the client knows.
outcome clGetEventInfo(call& c) {
  question_body body;
  if (!take_all(c, body)) return outcome::malformed();
  cl_event event = nullptr;
  cl_int code = resolve(c, body.object, event);
  cl_int status = CL_QUEUED;
  if (code == CL_SUCCESS) {
    code = own(c).table().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                                         nullptr);
  }
  c.reply.put(status);
  return outcome::answer(code);
}

/// The callback comes in any case: a client that waits for it would wait for ever.
outcome clSetEventCallback(call& c) {
  event_callback_body body;
  if (!take_all(c, body)) return outcome::malformed();
  cl_event event = nullptr;
  cl_int code = resolve(c, body.event, event);
  if (code == CL_SUCCESS) {
    auto data = std::make_unique<watched>(watched{&own(c), body.number});
    code = own(c).table().clSetEventCallback(event, body.status, watched::reached, data.get());
    if (code == CL_SUCCESS) (void)data.release();
  }
  if (code != CL_SUCCESS) own(c).tell_event(body.number, code);
  return outcome::answer(CL_SUCCESS);
}

/// All times at once, those that the device does not have as zero.
outcome clGetEventProfilingInfo(call& c) {
  question_body body;
  if (!take_all(c, body)) return outcome::malformed();
  cl_event event = nullptr;
  cl_int code = resolve(c, body.object, event);
  constexpr std::array names{CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
                             CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};
  std::array<cl_ulong, 5> times{};
  const auto ask = [&](cl_profiling_info name, cl_ulong& time) {
    return own(c).table().clGetEventProfilingInfo(event, name, sizeof time, &time, nullptr);
  };
  for (std::size_t i = 0; i < names.size() && code == CL_SUCCESS; ++i) code = ask(names[i], times[i]);
  if (code == CL_SUCCESS && ask(CL_PROFILING_COMMAND_COMPLETE, times[4]) != CL_SUCCESS) times[4] = times[3];
  for (const cl_ulong time : times) c.reply.put(time);
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend::opencl
