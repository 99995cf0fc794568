// Which C types of OpenCL are handles, and which error a function returns for an invalid one. Compile-time
// only.
#pragma once

#include "api/handles.hh"
#include "api/opencl/headers.hh"

namespace outboard::api {

#define OUTBOARD_HANDLE(type)                              \
  template <>                                              \
  struct handle_trait<::type> {                            \
    static constexpr handle_kind kind = handle_kind::type; \
  }
template <>
struct handle_trait<cl_platform_id> {
  static constexpr handle_kind kind = handle_kind::cl_platform;
};
template <>
struct handle_trait<cl_device_id> {
  static constexpr handle_kind kind = handle_kind::cl_device;
};
OUTBOARD_HANDLE(cl_context);
OUTBOARD_HANDLE(cl_command_queue);
OUTBOARD_HANDLE(cl_mem);
OUTBOARD_HANDLE(cl_program);
OUTBOARD_HANDLE(cl_kernel);
OUTBOARD_HANDLE(cl_event);
OUTBOARD_HANDLE(cl_sampler);
#undef OUTBOARD_HANDLE

namespace opencl {

/// The error of a function whose argument is not a living object of this kind.
constexpr cl_int invalid(handle_kind kind) {
  switch (kind) {
    case handle_kind::cl_platform:
      return CL_INVALID_PLATFORM;
    case handle_kind::cl_device:
      return CL_INVALID_DEVICE;
    case handle_kind::cl_context:
      return CL_INVALID_CONTEXT;
    case handle_kind::cl_command_queue:
      return CL_INVALID_COMMAND_QUEUE;
    case handle_kind::cl_mem:
      return CL_INVALID_MEM_OBJECT;
    case handle_kind::cl_program:
      return CL_INVALID_PROGRAM;
    case handle_kind::cl_kernel:
      return CL_INVALID_KERNEL;
    case handle_kind::cl_event:
      return CL_INVALID_EVENT;
    case handle_kind::cl_sampler:
      return CL_INVALID_SAMPLER;
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace opencl
}  // namespace outboard::api
