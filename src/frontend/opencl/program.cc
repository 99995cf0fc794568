#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl::ends {
namespace {

using notify = void(CL_CALLBACK*)(cl_program, void*);

build built_of(program_info& program) {
  const std::lock_guard lock(program.mutex);
  return program.built;
}

/// What the last build says of a device; nullptr: there was none.
const marshal::opencl::device_build* build_for(const build& built, cl_device_id device) {
  if (!built) return nullptr;
  const auto found = std::find_if(built->devices.begin(), built->devices.end(),
                                  [&](const auto& each) { return each.device == id_of(device); });
  return found == built->devices.end() ? nullptr : &*found;
}

/// All of the program's, or those that are named.
cl_int check_devices(const program_info& program, cl_uint count, const cl_device_id* list,
                     marshal::opencl::ids& wanted) {
  if ((count == 0) != (list == nullptr)) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < count; ++i) {
    if (std::find(program.devices.begin(), program.devices.end(), list[i]) == program.devices.end())
      return CL_INVALID_DEVICE;
    wanted.push_back(id_of(list[i]));
  }
  return CL_SUCCESS;
}

/// One row of bytes for each device, into the program's places where it gives some.
cl_int give_binaries(cl_program program, const program_info& info, const asked& to) {
  const std::size_t size = info.devices.size() * sizeof(unsigned char*);
  if (to.value && to.size < size) return CL_INVALID_VALUE;
  if (to.wanted) *to.wanted = size;
  if (!to.value) return CL_SUCCESS;
  message m(opcode::clGetProgramInfo);
  marshal::put_body(m.body(), marshal::opencl::question_body{id_of(program), 0, CL_PROGRAM_BINARIES, {}});
  if (const cl_int code = m.call(); code != CL_SUCCESS) return code;
  wire::reader reply = m.reply();
  const auto count = reply.get<std::uint64_t>();
  auto* const* const places = static_cast<unsigned char* const*>(to.value);
  for (std::uint64_t i = 0; i < count && reply.ok(); ++i) {
    const auto id = reply.get<std::uint64_t>();
    const auto binary = reply.sized();
    const auto at = std::find_if(info.devices.begin(), info.devices.end(),
                                 [id](cl_device_id device) { return id_of(device) == id; });
    unsigned char* const place = at == info.devices.end() ? nullptr : places[at - info.devices.begin()];
    if (place && !binary.empty()) std::memcpy(place, binary.data(), binary.size());
  }
  return reply.finished() ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

std::string kernel_names(const build& built) {
  std::string names;
  for (const auto& kernel : built->kernels) names.append(names.empty() ? "" : ";").append(kernel.name);
  return names;
}

}  // namespace

cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char** strings,
                                     const std::size_t* lengths, cl_int* errcode_ret) {
  const auto* const in = find<context_info>(context);
  if (!in) return fail(errcode_ret, CL_INVALID_CONTEXT);
  if (count == 0 || !strings || std::count(strings, strings + count, nullptr))
    return fail(errcode_ret, CL_INVALID_VALUE);
  auto info = std::make_unique<program_info>();
  info->context = needed(context);
  info->devices = in->devices;
  for (cl_uint i = 0; i < count; ++i) {
    if (lengths && lengths[i]) {
      info->source.append(strings[i], lengths[i]);
    } else {
      info->source.append(strings[i]);
    }
  }
  const std::string& source = info->source;  // lives as long as the program
  return create<cl_program>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    sent_bytes text;
    if (const cl_int code = send_bytes(std::as_bytes(std::span(source)), text); code) return code;
    return post_body(opcode::clCreateProgramWithSource,
                     marshal::opencl::source_body{id, id_of(context), text.about}, text.rest);
  });
}

cl_program clCreateProgramWithBinary(cl_context context, cl_uint num_devices, const cl_device_id* device_list,
                                     const std::size_t* lengths, const unsigned char** binaries,
                                     cl_int* binary_status, cl_int* errcode_ret) {
  const auto* const in = find<context_info>(context);
  if (!in) return fail(errcode_ret, CL_INVALID_CONTEXT);
  if (num_devices == 0 || !device_list || !lengths || !binaries) return fail(errcode_ret, CL_INVALID_VALUE);
  marshal::opencl::binary_body body;
  std::vector<std::byte> all;
  for (cl_uint i = 0; i < num_devices; ++i) {
    if (std::find(in->devices.begin(), in->devices.end(), device_list[i]) == in->devices.end())
      return fail(errcode_ret, CL_INVALID_DEVICE);
    const bool empty = lengths[i] == 0 || !binaries[i];
    if (binary_status) binary_status[i] = empty ? CL_INVALID_VALUE : CL_SUCCESS;
    if (empty) return fail(errcode_ret, CL_INVALID_VALUE);
    body.devices.push_back(id_of(device_list[i]));
    body.lengths.push_back(lengths[i]);
    const auto* const first = reinterpret_cast<const std::byte*>(binaries[i]);
    all.insert(all.end(), first, first + lengths[i]);
  }
  auto info = std::make_unique<program_info>();
  info->context = needed(context);
  info->devices.assign(device_list, device_list + num_devices);
  body.context = id_of(context);
  return create<cl_program>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    sent_bytes bytes;
    if (const cl_int code = send_bytes(all, bytes); code) return code;
    body.handle = id;
    body.binaries = bytes.about;
    message m(opcode::clCreateProgramWithBinary);
    marshal::put_body(m.body(), body);
    const cl_int code = m.call(bytes.rest);
    if (code != CL_SUCCESS) return code;
    wire::reader reply = m.reply();
    for (cl_uint i = 0; i < num_devices; ++i) {
      const auto status = reply.get<cl_int>();
      if (binary_status) binary_status[i] = status;
    }
    return reply.finished() ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  });
}

cl_int clRetainProgram(cl_program program) { return retain(program); }
cl_int clReleaseProgram(cl_program program) { return release(program); }

/// Waits for the compiler; `pfn_notify` is called before the return, as the standard permits.
cl_int clBuildProgram(cl_program program, cl_uint num_devices, const cl_device_id* device_list,
                      const char* options, notify pfn_notify, void* user_data) {
  auto* const info = find<program_info>(program);
  if (!info) return CL_INVALID_PROGRAM;
  marshal::opencl::build_body body;
  body.program = id_of(program);
  if (const cl_int code = check_devices(*info, num_devices, device_list, body.devices); code) return code;
  if (!pfn_notify && user_data) return CL_INVALID_VALUE;
  if (info->kernels.load()) return CL_INVALID_OPERATION;
  body.has_options = options != nullptr;
  if (options) body.options = options;
  message m(opcode::clBuildProgram);
  marshal::put_body(m.body(), body);
  if (const cl_int code = m.call(); code != CL_SUCCESS) return code;
  wire::reader reply = m.reply();
  auto built =
      std::make_shared<marshal::opencl::build_reply>(marshal::take_body<marshal::opencl::build_reply>(reply));
  if (!reply.finished()) return CL_OUT_OF_RESOURCES;
  const cl_int code = built->code;
  {
    const std::lock_guard lock(info->mutex);
    info->built = std::move(built);
  }
  if (pfn_notify) pfn_notify(program, user_data);
  return code;
}

cl_int clSetProgramReleaseCallback(cl_program program, notify pfn_notify, void* user_data) {
  auto* const info = find<program_info>(program);
  if (!info) return CL_INVALID_PROGRAM;
  if (!pfn_notify) return CL_INVALID_VALUE;
  info->at_end.add([=] { pfn_notify(program, user_data); });
  return CL_SUCCESS;
}

cl_int clGetProgramInfo(cl_program program, cl_program_info name, std::size_t size, void* value,
                        std::size_t* wanted) {
  auto* const info = find<program_info>(program);
  if (!info) return CL_INVALID_PROGRAM;
  const asked to{size, value, wanted};
  const build built = built_of(*info);
  const bool usable = built && built->code == CL_SUCCESS;
  switch (name) {
    case CL_PROGRAM_REFERENCE_COUNT:
      return to.one(references(program));
    case CL_PROGRAM_CONTEXT:
      return to.one(info->context.get());
    case CL_PROGRAM_NUM_DEVICES:
      return to.one(static_cast<cl_uint>(info->devices.size()));
    case CL_PROGRAM_DEVICES:
      return to.list(info->devices);
    case CL_PROGRAM_SOURCE:
      return to.text(info->source);
    case CL_PROGRAM_IL:
      return to.bytes(nullptr, 0);
    case CL_PROGRAM_BINARY_SIZES: {
      std::vector<std::size_t> sizes(info->devices.size());
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (const auto* about = build_for(built, info->devices[i])) sizes[i] = about->binary_size;
      }
      return to.list(sizes);
    }
    case CL_PROGRAM_BINARIES:
      return give_binaries(program, *info, to);
    case CL_PROGRAM_NUM_KERNELS:
      return usable ? to.one(built->kernels.size()) : CL_INVALID_PROGRAM_EXECUTABLE;
    case CL_PROGRAM_KERNEL_NAMES:
      return usable ? to.text(kernel_names(built)) : CL_INVALID_PROGRAM_EXECUTABLE;
    case CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT:
    case CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT:
      return to.one(cl_bool{CL_FALSE});
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info name,
                             std::size_t size, void* value, std::size_t* wanted) {
  auto* const info = find<program_info>(program);
  if (!info) return CL_INVALID_PROGRAM;
  if (std::find(info->devices.begin(), info->devices.end(), device) == info->devices.end())
    return CL_INVALID_DEVICE;
  const build built = built_of(*info);
  const marshal::opencl::device_build none{0, CL_BUILD_NONE, CL_PROGRAM_BINARY_TYPE_NONE, 0, 0, {}, {}};
  const auto* about = build_for(built, device);
  if (!about) about = &none;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_PROGRAM_BUILD_STATUS:
      return to.one(cl_build_status{about->status});
    case CL_PROGRAM_BUILD_OPTIONS:
      return to.text(about->options);
    case CL_PROGRAM_BUILD_LOG:
      return to.text(about->log);
    case CL_PROGRAM_BINARY_TYPE:
      return to.one(cl_program_binary_type{about->binary_type});
    case CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE:
      return to.one(static_cast<std::size_t>(about->global_variables));
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace outboard::frontend::opencl::ends
