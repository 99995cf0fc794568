// Objects of the fuzzing platform: how they are made, queried and released.
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "base/check.hh"
#include "base/pages.hh"
#include "opencl_world.hh"

namespace outboard::fuzz {
namespace {

constexpr std::size_t most_bytes = 1u << 20, most_total = 32u << 20;
constexpr cl_device_svm_capabilities shared_kinds =
    CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS;

/// Memory of its own or the host's; nothing if there is not enough.
bool fill(memory& m, std::size_t size, cl_mem_flags flags, void* host) {
  m.size = size;
  if (host) touch(host, size);
  if (flags & CL_MEM_USE_HOST_PTR) {
    m.bytes = static_cast<std::byte*>(host);
    return host != nullptr;
  }
  if (size == 0 || size > most_bytes || all().total + size > most_total) return m.size = 0, false;
  m.own = std::make_unique<std::byte[]>(size);
  m.bytes = m.own.get();
  all().total += size;
  return true;
}

cl_mem buffer(cl_context in, cl_mem_flags flags, std::size_t size, void* host, cl_int* code) {
  const inside here;
  (void)the<context>(in);
  auto m = std::make_shared<memory>();
  // Host memory may be larger, because it takes no device memory.
  if (!fill(*m, size, flags, host)) return none<cl_mem>(code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  return made<cl_mem>(std::move(m), code);
}

cl_mem part(cl_mem of, cl_mem_flags, cl_buffer_create_type, const void* about, cl_int* code) {
  const inside here;
  cl_buffer_region region;
  std::memcpy(&region, about, sizeof region);
  auto m = std::make_shared<memory>();
  m->parent = the<memory>(of);
  CHECK(m->parent->type == CL_MEM_OBJECT_BUFFER);
  CHECK(region.size <= m->parent->size && region.origin <= m->parent->size - region.size);
  if (region.size == 0 || m->parent->parent) return none<cl_mem>(code, CL_INVALID_VALUE);
  m->bytes = m->parent->bytes + region.origin;
  m->size = region.size;
  return made<cl_mem>(std::move(m), code);
}

std::size_t channels(const cl_image_format& f) {
  return f.image_channel_order == CL_R ? 1 : f.image_channel_order == CL_RG ? 2 : 4;
}
std::size_t channel_bytes(const cl_image_format& f) {
  return f.image_channel_data_type == CL_FLOAT ? 4 : f.image_channel_data_type == CL_HALF_FLOAT ? 2 : 1;
}

cl_mem image(cl_context in, cl_mem_flags flags, const cl_image_format* format, const cl_image_desc* desc,
             void* host, cl_int* code) {
  const inside here;
  (void)the<context>(in);
  auto m = std::make_shared<memory>();
  cl_image_desc d = *desc;
  std::size_t rows = 1, slices = 1;
  switch (d.image_type) {
    case CL_MEM_OBJECT_IMAGE1D:
    case CL_MEM_OBJECT_IMAGE1D_BUFFER:
      break;
    case CL_MEM_OBJECT_IMAGE2D:
      rows = d.image_height;
      break;
    case CL_MEM_OBJECT_IMAGE3D:
      rows = d.image_height, slices = d.image_depth;
      break;
    case CL_MEM_OBJECT_IMAGE1D_ARRAY:
      slices = d.image_array_size;
      break;
    case CL_MEM_OBJECT_IMAGE2D_ARRAY:
      rows = d.image_height, slices = d.image_array_size;
      break;
    default:
      return none<cl_mem>(code, CL_INVALID_IMAGE_DESCRIPTOR);
  }
  for (const std::size_t n : {d.image_width, rows, slices}) {
    if (n == 0 || n > 4096) return none<cl_mem>(code, CL_INVALID_IMAGE_SIZE);
  }
  m->type = d.image_type;
  m->element = channels(*format) * channel_bytes(*format);
  if (d.mem_object) m->parent = the<memory>(d.mem_object);
  const bool takes_pitch = m->parent && d.image_row_pitch;
  if (takes_pitch && (d.image_row_pitch < d.image_width * m->element || d.image_row_pitch >> 32))
    return none<cl_mem>(code, CL_INVALID_IMAGE_DESCRIPTOR);
  m->row = takes_pitch ? d.image_row_pitch : d.image_width * m->element;
  m->slice = rows * m->row;
  m->shape = d;
  const std::size_t size = slices * m->slice;
  if (m->parent) {
    CHECK(!host);
    m->bytes = m->parent->bytes;
    m->size = size;  // may exceed the memory behind it: its users check the range
    if (m->parent->type != CL_MEM_OBJECT_BUFFER) m->size = std::min(size, m->parent->size);
  } else if (!fill(*m, size, flags, host)) {
    return none<cl_mem>(code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
  }
  return made<cl_mem>(std::move(m), code);
}

cl_int memory_info(cl_mem at, cl_mem_info name, std::size_t room, void* to, std::size_t* wanted) {
  const inside here;
  if (!at) return CL_INVALID_MEM_OBJECT;
  const auto m = the<memory>(at);
  if (name == CL_MEM_TYPE) return give_value(m->type, room, to, wanted);
  if (name == CL_MEM_SIZE) return give_value(m->size, room, to, wanted);
  return CL_INVALID_VALUE;
}

cl_int image_info(cl_mem at, cl_image_info name, std::size_t room, void* to, std::size_t* wanted) {
  const inside here;
  const auto m = at ? the<memory>(at) : nullptr;
  if (!m || m->type == CL_MEM_OBJECT_BUFFER || m->type == CL_MEM_OBJECT_PIPE) return CL_INVALID_MEM_OBJECT;
  switch (name) {
    case CL_IMAGE_ELEMENT_SIZE:
      return give_value(m->element, room, to, wanted);
    case CL_IMAGE_ROW_PITCH:
      return give_value(m->row, room, to, wanted);
    case CL_IMAGE_SLICE_PITCH:
      return give_value(m->slice, room, to, wanted);
    case CL_IMAGE_WIDTH:
      return give_value(m->shape.image_width, room, to, wanted);
    case CL_IMAGE_HEIGHT:
      return give_value(m->shape.image_height, room, to, wanted);
    case CL_IMAGE_DEPTH:
      return give_value(m->shape.image_depth, room, to, wanted);
    case CL_IMAGE_ARRAY_SIZE:
      return give_value(m->shape.image_array_size, room, to, wanted);
    default:
      return CL_INVALID_VALUE;
  }
}

void* shared(cl_context in, cl_svm_mem_flags, std::size_t size, cl_uint alignment) {
  const inside here;
  (void)the<context>(in);
  if (size == 0 || size > most_bytes || (alignment & (alignment - 1)) || alignment > page_size())
    return nullptr;
  world& w = all();
  if (w.shared_once.size() == 64) return nullptr;
  void* const at = ::mmap(reinterpret_cast<void*>(shared_address(w.shared_once.size())), size,
                          PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<std::uint64_t>(at);
  w.shared[address] = size;
  w.shared_once.emplace_back(address, page_up(size));
  return at;
}

cl_int divide(cl_device_id of, const cl_device_partition_property* list, cl_uint room, cl_device_id* to,
              cl_uint* wanted) {
  const inside here;
  (void)the<device>(of);
  cl_uint parts = 2;
  if (list[0] == CL_DEVICE_PARTITION_BY_COUNTS) {
    const auto* at = list + 1;
    while (*at) ++at;
    parts = static_cast<cl_uint>(at - list - 1);
    if (at[1] != 0 || parts == 0) return CL_INVALID_VALUE;
  } else if (list[0] != CL_DEVICE_PARTITION_EQUALLY || list[1] == 0 || list[2] != 0) {
    return CL_INVALID_VALUE;
  }
  if (all().all.size() > 256) return CL_DEVICE_PARTITION_FAILED;
  if (wanted) *wanted = parts;
  for (cl_uint i = 0; to && i < std::min(room, parts); ++i)
    to[i] = add<cl_device_id>(std::make_shared<device>());
  return CL_SUCCESS;
}

cl_int tell_status(cl_event at, cl_event_info name, std::size_t room, void* to, std::size_t* wanted) {
  const inside here;
  if (!at) return CL_INVALID_EVENT;
  const auto e = the<event>(at);
  if (name == CL_EVENT_COMMAND_QUEUE) return give_value(e->in, room, to, wanted);
  if (name != CL_EVENT_COMMAND_EXECUTION_STATUS) return CL_INVALID_VALUE;
  const cl_int before = e->status;
  if (std::exchange(e->seen, true)) carry_out(false);  // a second query finds more done
  return give_value(before, room, to, wanted);
}

template <class H, kind K>
cl_int retain(H at) {
  const inside here;
  if (!at) return CL_INVALID_VALUE;
  return ++living(at, K)->references, CL_SUCCESS;
}
template <class H, kind K>
cl_int release(H at) {
  const inside here;
  return at ? drop(at, K) : CL_INVALID_VALUE;
}

void add_objects(api::opencl::function_table& t) {
  t.clGetPlatformIDs = [](cl_uint room, cl_platform_id* to, cl_uint* wanted) -> cl_int {
    if (wanted) *wanted = 1;
    if (room) *to = reinterpret_cast<cl_platform_id>(all().the_platform.get());
    return CL_SUCCESS;
  };
  t.clGetPlatformInfo = [](cl_platform_id, cl_platform_info name, std::size_t room, void* to,
                           std::size_t* wanted) -> cl_int {
    return name == CL_PLATFORM_NAME ? give_text("fuzz", room, to, wanted) : CL_INVALID_VALUE;
  };
  t.clGetDeviceIDs = [](cl_platform_id, cl_device_type, cl_uint room, cl_device_id* to,
                        cl_uint* wanted) -> cl_int {
    if (wanted) *wanted = 1;
    if (room) *to = reinterpret_cast<cl_device_id>(all().the_device.get());
    return CL_SUCCESS;
  };
  t.clGetDeviceInfo = [](cl_device_id, cl_device_info name, std::size_t room, void* to,
                         std::size_t* wanted) -> cl_int {
    if (name == CL_DEVICE_TYPE) return give_value<cl_device_type>(CL_DEVICE_TYPE_CPU, room, to, wanted);
    if (name == CL_DEVICE_SVM_CAPABILITIES) return give_value(shared_kinds, room, to, wanted);
    return CL_INVALID_VALUE;
  };
  t.clCreateContext = [](const cl_context_properties* list, cl_uint count, const cl_device_id* devices,
                         void(CL_CALLBACK*)(const char*, const void*, std::size_t, void*), void*,
                         cl_int* code) -> cl_context {
    const inside here;
    for (; list && *list; list += 2) {
      CHECK(list[0] == CL_CONTEXT_PLATFORM || list[0] == CL_CONTEXT_INTEROP_USER_SYNC);
      if (list[0] == CL_CONTEXT_PLATFORM) (void)living(reinterpret_cast<void*>(list[1]), kind::platform);
    }
    if (count == 0) return none<cl_context>(code, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < count; ++i) (void)the<device>(devices[i]);
    return made<cl_context>(std::make_shared<context>(), code);
  };
  t.clGetContextInfo = [](cl_context at, cl_context_info name, std::size_t room, void* to,
                          std::size_t* wanted) -> cl_int {
    const inside here;
    (void)the<context>(at);
    if (name != CL_CONTEXT_DEVICES) return CL_INVALID_VALUE;
    return give_value(all().the_device.get(), room, to, wanted);
  };
  t.clCreateCommandQueue = [](cl_context in, cl_device_id on, cl_command_queue_properties bits,
                              cl_int* code) -> cl_command_queue {
    const inside here;
    (void)the<context>(in), (void)the<device>(on);
    auto q = std::make_shared<queue>();
    q->in = in, q->bits = bits;
    return made<cl_command_queue>(std::move(q), code);
  };
  t.clGetCommandQueueInfo = [](cl_command_queue at, cl_command_queue_info name, std::size_t room, void* to,
                               std::size_t* wanted) -> cl_int {
    const inside here;
    const auto q = the<queue>(at);
    if (name == CL_QUEUE_CONTEXT) return give_value(q->in, room, to, wanted);
    return name == CL_QUEUE_PROPERTIES ? give_value(q->bits, room, to, wanted) : CL_INVALID_VALUE;
  };
  t.clCreateBuffer = buffer;
  t.clCreateSubBuffer = part;
  t.clCreateImage = image;
  t.clCreatePipe = [](cl_context in, cl_mem_flags, cl_uint size, cl_uint packets, const cl_pipe_properties*,
                      cl_int* code) -> cl_mem {
    const inside here;
    (void)the<context>(in);
    auto m = std::make_shared<memory>();
    m->type = CL_MEM_OBJECT_PIPE;
    if (!fill(*m, std::size_t{size} * packets, 0, nullptr)) return none<cl_mem>(code, CL_INVALID_PIPE_SIZE);
    return made<cl_mem>(std::move(m), code);
  };
  t.clGetMemObjectInfo = memory_info;
  t.clGetImageInfo = image_info;
  t.clSetMemObjectDestructorCallback = [](cl_mem at, void(CL_CALLBACK * tell)(cl_mem, void*),
                                          void* data) -> cl_int {
    const inside here;
    the<memory>(at)->at_end.push_back({tell, data});
    return CL_SUCCESS;
  };
  t.clGetSupportedImageFormats = [](cl_context in, cl_mem_flags, cl_mem_object_type, cl_uint room,
                                    cl_image_format* to, cl_uint* wanted) -> cl_int {
    const inside here;
    (void)the<context>(in);
    *wanted = 2;
    for (cl_uint i = 0; i < std::min<cl_uint>(room, 2); ++i) to[i] = {CL_RGBA, CL_UNORM_INT8};
    return CL_SUCCESS;
  };
  t.clSVMAlloc = shared;
  t.clSVMFree = [](cl_context in, void* at) {
    const inside here;
    (void)the<context>(in);
    CHECK(all().shared.erase(reinterpret_cast<std::uint64_t>(at)) == 1);
  };
  t.clCreateSampler = [](cl_context in, cl_bool, cl_addressing_mode, cl_filter_mode,
                         cl_int* code) -> cl_sampler {
    const inside here;
    if (!in) return none<cl_sampler>(code, CL_INVALID_CONTEXT);
    (void)the<context>(in);
    return made<cl_sampler>(std::make_shared<sampler>(), code);
  };
  t.clRetainContext = retain<cl_context, kind::context>;
  t.clRetainCommandQueue = retain<cl_command_queue, kind::queue>;
  t.clRetainProgram = retain<cl_program, kind::program>;
  t.clRetainEvent = retain<cl_event, kind::event>;
  t.clReleaseContext = release<cl_context, kind::context>;
  t.clReleaseMemObject = release<cl_mem, kind::memory>;
  t.clReleaseSampler = release<cl_sampler, kind::sampler>;
  t.clReleaseProgram = release<cl_program, kind::program>;
  t.clReleaseKernel = release<cl_kernel, kind::kernel>;
  t.clReleaseEvent = release<cl_event, kind::event>;
  t.clReleaseCommandQueue = [](cl_command_queue at) -> cl_int {
    const inside here;
    if (!at) return CL_INVALID_COMMAND_QUEUE;
    if (the<queue>(at)->references == 1) carry_out(true);
    return drop(at, kind::queue);
  };
  t.clReleaseDevice = [](cl_device_id at) -> cl_int {
    const inside here;
    if (!at) return CL_INVALID_DEVICE;
    return the<device>(at) == all().the_device ? CL_SUCCESS : drop(at, kind::device);
  };
  t.clCreateSubDevices = divide;
}

void add_events(api::opencl::function_table& t) {
  t.clCreateUserEvent = [](cl_context in, cl_int* code) -> cl_event {
    const inside here;
    if (!in) return none<cl_event>(code, CL_INVALID_CONTEXT);
    (void)the<context>(in);
    return made<cl_event>(std::make_shared<event>(), code);
  };
  t.clSetUserEventStatus = [](cl_event at, cl_int status) -> cl_int {
    const inside here;
    if (!at) return CL_INVALID_EVENT;
    const auto e = the<event>(at);
    if (e->in) return CL_INVALID_EVENT;
    if (status > CL_COMPLETE || e->status <= CL_COMPLETE) return CL_INVALID_VALUE;
    reach(*e, status);
    return CL_SUCCESS;
  };
  t.clGetEventInfo = tell_status;
  t.clGetEventProfilingInfo = [](cl_event at, cl_profiling_info name, std::size_t room, void* to,
                                 std::size_t* wanted) -> cl_int {
    const inside here;
    (void)the<event>(at);
    return give_value(cl_ulong{name}, room, to, wanted);
  };
  t.clSetEventCallback = [](cl_event at, cl_int status, void(CL_CALLBACK * tell)(cl_event, cl_int, void*),
                            void* data) -> cl_int {
    const inside here;
    if (status < CL_COMPLETE || status > CL_SUBMITTED) return CL_INVALID_VALUE;
    const auto e = the<event>(at);
    e->callbacks.push_back({status, tell, data});
    if (e->status <= CL_COMPLETE) reach(*e, e->status);
    return CL_SUCCESS;
  };
  t.clWaitForEvents = [](cl_uint count, const cl_event* list) -> cl_int {
    const inside here;
    cl_int code = count ? CL_SUCCESS : CL_INVALID_VALUE;
    carry_out(true);
    for (cl_uint i = 0; i < count; ++i) {
      if (!list[i]) return CL_INVALID_EVENT;
      if (the<event>(list[i])->status < 0) code = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    }
    return code;
  };
  t.clFlush = [](cl_command_queue at) -> cl_int {
    const inside here;
    if (!at) return CL_INVALID_COMMAND_QUEUE;
    return (void)the<queue>(at), CL_SUCCESS;
  };
  t.clFinish = [](cl_command_queue at) -> cl_int {
    const inside here;
    if (!at) return CL_INVALID_COMMAND_QUEUE;
    (void)the<queue>(at);
    carry_out(true);
    return CL_SUCCESS;
  };
}

}  // namespace

api::opencl::function_table platform_table() {
  api::opencl::function_table t;
  add_objects(t);
  add_programs(t);
  add_events(t);
  add_commands(t);
  return t;
}

}  // namespace outboard::fuzz
