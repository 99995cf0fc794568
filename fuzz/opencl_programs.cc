// Programs and kernels of the fuzzing platform: nothing is compiled, and each program has the one kernel with
// a parameter of each kind.
#include <algorithm>
#include <cstring>

#include "base/check.hh"
#include "opencl_world.hh"

namespace outboard::fuzz {
namespace {

cl_program program_of(cl_context in, const void* text, std::size_t size, cl_int* code) {
  (void)the<context>(in);
  touch(text, size);
  auto p = std::make_shared<program>();
  const auto* const first = static_cast<const std::byte*>(text);
  p->text.assign(first, first + size);
  return made<cl_program>(std::move(p), code);
}

bool says(const program& p, char letter) {
  return std::ranges::find(p.text, static_cast<std::byte>(letter)) != p.text.end();
}

/// Programs with a certain letter fail to build; those with another give no information about arguments.
cl_int build(cl_program at, cl_uint count, const cl_device_id* devices) {
  if (!at) return CL_INVALID_PROGRAM;
  const auto p = the<program>(at);
  for (cl_uint i = 0; i < count; ++i) {
    if (!devices[i]) return CL_INVALID_DEVICE;
    (void)the<device>(devices[i]);
  }
  p->failed = says(*p, 'E');
  p->built = !p->failed;
  ++p->builds;
  return p->failed ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS;
}

cl_int program_info(cl_program at, cl_program_info name, std::size_t room, void* to, std::size_t* wanted) {
  const inside here;
  if (!at) return CL_INVALID_PROGRAM;
  const auto p = the<program>(at);
  const std::size_t size = p->built ? p->text.size() + p->builds : 0;
  if (name == CL_PROGRAM_DEVICES) return give_value(all().the_device.get(), room, to, wanted);
  if (name == CL_PROGRAM_BINARY_SIZES) return give_value(size, room, to, wanted);
  if (name != CL_PROGRAM_BINARIES) return CL_INVALID_VALUE;
  void* place = nullptr;
  if (room < sizeof place) return CL_INVALID_VALUE;
  std::memcpy(&place, to, sizeof place);
  change(place, size, std::byte{'b'});
  return CL_SUCCESS;
}

cl_int build_info(cl_program at, cl_device_id, cl_program_build_info name, std::size_t room, void* to,
                  std::size_t* wanted) {
  const inside here;
  const auto p = the<program>(at);
  if (name == CL_PROGRAM_BUILD_STATUS) {
    const cl_build_status status = p->built ? CL_BUILD_SUCCESS : p->failed ? CL_BUILD_ERROR : CL_BUILD_NONE;
    return give_value(status, room, to, wanted);
  }
  if (name == CL_PROGRAM_BUILD_LOG) return give_text(std::string(p->builds, 'l'), room, to, wanted);
  return CL_INVALID_VALUE;
}

cl_kernel kernel_of(cl_program at, cl_int* code) {
  const auto p = at ? the<program>(at) : nullptr;
  if (!p || !p->built) return none<cl_kernel>(code, CL_INVALID_PROGRAM_EXECUTABLE);
  auto k = std::make_shared<kernel>();
  k->tells = !says(*p, 'N');
  return made<cl_kernel>(std::move(k), code);
}

cl_int argument_info(cl_kernel at, cl_uint index, cl_kernel_arg_info name, std::size_t room, void* to,
                     std::size_t* wanted) {
  const inside here;
  const auto k = the<kernel>(at);
  if (!k->tells) return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
  if (index >= std::size(parameters)) return CL_INVALID_ARG_INDEX;
  const parameter& p = parameters[index];
  if (name == CL_KERNEL_ARG_ADDRESS_QUALIFIER) {
    const bool global = p.what == takes::memory || p.what == takes::image;
    const cl_kernel_arg_address_qualifier where = p.what == takes::local ? CL_KERNEL_ARG_ADDRESS_LOCAL
                                                  : global               ? CL_KERNEL_ARG_ADDRESS_GLOBAL
                                                                         : CL_KERNEL_ARG_ADDRESS_PRIVATE;
    return give_value(where, room, to, wanted);
  }
  if (name == CL_KERNEL_ARG_TYPE_NAME) return give_text(p.type, room, to, wanted);
  return CL_INVALID_VALUE;
}

cl_int set_argument(cl_kernel at, cl_uint index, std::size_t size, const void* value) {
  const inside here;
  const auto k = the<kernel>(at);
  if (index >= std::size(parameters)) return CL_INVALID_ARG_INDEX;
  if (value) touch(value, size);
  const parameter& p = parameters[index];
  kernel::value& kept = k->values[index];
  if (p.what == takes::local) {
    if (value) return CL_INVALID_ARG_VALUE;
    return size == 0 ? CL_INVALID_ARG_SIZE : (kept.set = true, CL_SUCCESS);
  }
  if (size != p.size) return CL_INVALID_ARG_SIZE;
  if (p.what == takes::bytes) return value ? (kept.set = true, CL_SUCCESS) : CL_INVALID_ARG_VALUE;
  void* object = nullptr;
  if (value) std::memcpy(&object, value, sizeof object);
  kept = {};
  switch (p.what) {
    case takes::sampler:
      if (!object) return CL_INVALID_SAMPLER;
      (void)the<sampler>(object);
      break;
    case takes::queue:
      if (!object) return CL_INVALID_DEVICE_QUEUE;
      (void)the<queue>(object);
      break;
    default:
      if (!object && p.what == takes::image) return CL_INVALID_MEM_OBJECT;
      if (object) kept.buffer = the<memory>(object);
      break;
  }
  return kept.set = true, CL_SUCCESS;
}

}  // namespace

void add_programs(api::opencl::function_table& t) {
  t.clCreateProgramWithSource = [](cl_context in, cl_uint, const char** text, const std::size_t* length,
                                   cl_int* code) -> cl_program {
    const inside here;
    return program_of(in, *text, length ? *length : std::strlen(*text), code);
  };
  t.clCreateProgramWithIL = [](cl_context in, const void* il, std::size_t size, cl_int* code) -> cl_program {
    const inside here;
    return program_of(in, il, size, code);
  };
  t.clCreateProgramWithBinary = [](cl_context in, cl_uint count, const cl_device_id* devices,
                                   const std::size_t* lengths, const unsigned char** binaries, cl_int* each,
                                   cl_int* code) -> cl_program {
    const inside here;
    if (count == 0) return none<cl_program>(code, CL_INVALID_VALUE);
    for (cl_uint i = 0; i < count; ++i) {
      (void)the<device>(devices[i]);
      touch(binaries[i], lengths[i]);
      each[i] = CL_SUCCESS;
    }
    return program_of(in, binaries[0], lengths[0], code);
  };
  t.clCreateProgramWithBuiltInKernels = [](cl_context in, cl_uint count, const cl_device_id* devices,
                                           const char* names, cl_int* code) -> cl_program {
    const inside here;
    for (cl_uint i = 0; i < count; ++i) (void)the<device>(devices[i]);
    const cl_program p = program_of(in, names, std::strlen(names), code);
    the<program>(p)->built = true;
    return p;
  };
  t.clBuildProgram = [](cl_program at, cl_uint count, const cl_device_id* devices, const char* options,
                        void(CL_CALLBACK*)(cl_program, void*), void*) -> cl_int {
    const inside here;
    touch(options, std::strlen(options));
    return build(at, count, devices);
  };
  t.clCompileProgram = [](cl_program at, cl_uint count, const cl_device_id* devices, const char*,
                          cl_uint headers, const cl_program* list, const char** names,
                          void(CL_CALLBACK*)(cl_program, void*), void*) -> cl_int {
    const inside here;
    for (cl_uint i = 0; i < headers; ++i) {
      (void)the<program>(list[i]);
      touch(names[i], std::strlen(names[i]));
    }
    return build(at, count, devices);
  };
  t.clLinkProgram = [](cl_context in, cl_uint count, const cl_device_id* devices, const char*, cl_uint n,
                       const cl_program* list, void(CL_CALLBACK*)(cl_program, void*), void*,
                       cl_int* code) -> cl_program {
    const inside here;
    for (cl_uint i = 0; i < n; ++i) (void)the<program>(list[i]);
    if (n == 0) return none<cl_program>(code, CL_INVALID_VALUE);
    const cl_program p = program_of(in, the<program>(list[0])->text.data(), 1, code);
    *code = build(p, count, devices);
    return p;
  };
  t.clGetProgramInfo = program_info;
  t.clGetProgramBuildInfo = build_info;
  t.clSetProgramSpecializationConstant = [](cl_program at, cl_uint, std::size_t size,
                                            const void* value) -> cl_int {
    const inside here;
    if (!at) return CL_INVALID_PROGRAM;
    (void)the<program>(at);
    if (value) touch(value, size);
    return CL_SUCCESS;
  };
  t.clCreateKernel = [](cl_program at, const char* name, cl_int* code) -> cl_kernel {
    const inside here;
    touch(name, std::strlen(name));
    return kernel_of(at, code);
  };
  t.clCreateKernelsInProgram = [](cl_program at, cl_uint room, cl_kernel* to, cl_uint* wanted) -> cl_int {
    const inside here;
    if (!the<program>(at)->built) return CL_INVALID_PROGRAM_EXECUTABLE;
    if (wanted) *wanted = 1;
    if (room) *to = kernel_of(at, nullptr);
    return CL_SUCCESS;
  };
  t.clCloneKernel = [](cl_kernel at, cl_int* code) -> cl_kernel {
    const inside here;
    if (!at) return none<cl_kernel>(code, CL_INVALID_KERNEL);
    auto k = std::make_shared<kernel>();
    k->tells = the<kernel>(at)->tells, k->values = the<kernel>(at)->values;
    return made<cl_kernel>(std::move(k), code);
  };
  t.clGetKernelInfo = [](cl_kernel at, cl_kernel_info name, std::size_t room, void* to,
                         std::size_t* wanted) -> cl_int {
    const inside here;
    (void)the<kernel>(at);
    if (name == CL_KERNEL_NUM_ARGS)
      return give_value(static_cast<cl_uint>(std::size(parameters)), room, to, wanted);
    return name == CL_KERNEL_FUNCTION_NAME ? give_text("all", room, to, wanted) : CL_INVALID_VALUE;
  };
  t.clGetKernelWorkGroupInfo = [](cl_kernel at, cl_device_id, cl_kernel_work_group_info, std::size_t, void*,
                                  std::size_t*) -> cl_int {
    const inside here;
    return (void)the<kernel>(at), CL_INVALID_VALUE;
  };
  t.clGetKernelSubGroupInfo = [](cl_kernel at, cl_device_id, cl_kernel_sub_group_info, std::size_t size,
                                 const void* input, std::size_t room, void* to,
                                 std::size_t* wanted) -> cl_int {
    const inside here;
    (void)the<kernel>(at);
    touch(input, size);
    const std::size_t answer[3] = {1, 2, 3};
    return give_bytes(answer, sizeof answer, room, to, wanted);
  };
  t.clGetKernelArgInfo = argument_info;
  t.clSetKernelArg = set_argument;
  t.clSetKernelArgSVMPointer = [](cl_kernel at, cl_uint index, const void* to) -> cl_int {
    const inside here;
    const auto k = the<kernel>(at);
    if (index >= std::size(parameters)) return CL_INVALID_ARG_INDEX;
    CHECK(parameters[index].what == takes::memory || parameters[index].what == takes::image);
    if (to) must_be_shared(reinterpret_cast<std::uint64_t>(to), 1);
    k->values[index] = {true, {}, reinterpret_cast<std::uint64_t>(to)};
    return CL_SUCCESS;
  };
  t.clSetKernelExecInfo = [](cl_kernel at, cl_kernel_exec_info, std::size_t size,
                             const void* list) -> cl_int {
    const inside here;
    (void)the<kernel>(at);
    for (std::size_t i = 0; i < size / sizeof(std::uint64_t); ++i) {
      std::uint64_t address = 0;
      std::memcpy(&address, static_cast<const std::byte*>(list) + i * sizeof address, sizeof address);
      if (address) must_be_shared(address, 1);
    }
    return CL_SUCCESS;
  };
}

}  // namespace outboard::fuzz
