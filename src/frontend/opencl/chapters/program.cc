#include "frontend/opencl/answer.hh"
#include "frontend/opencl/build/build.hh"
#include "frontend/opencl/build/build_files.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"
#include "marshal/opencl/widths.hh"

namespace outboard::frontend::opencl::ends {
namespace {

using notify = void(CL_CALLBACK*)(cl_program, void*);

bool has(const context_info& context, cl_device_id device) {
  return std::find(context.devices.begin(), context.devices.end(), device) != context.devices.end();
}

/// What the last build says of a device; nullptr: there was none.
const marshal::opencl::device_build* build_for(const build& built, cl_device_id device) {
  const std::size_t at = built ? position_of(*built, device) : 0;
  return built && at < built->devices.size() ? &built->devices[at] : nullptr;
}

/// Asks for something of each device's binary; `take` gets the device's place in the program's list, and the
/// answer to read on from.
template <class Take>
cl_int ask_binaries(cl_program program, const program_info& info, cl_program_info name, Take&& take) {
  message m(opcode::clGetProgramInfo);
  marshal::put_body(m.body(), marshal::opencl::question_body{id_of(program), 0, name, {}});
  if (const cl_int code = m.call(); code != CL_SUCCESS) return code;
  wire::reader reply = m.reply();
  const auto count = reply.get<std::uint64_t>();
  for (std::uint64_t i = 0; i < count && reply.ok(); ++i) {
    const auto id = reply.get<std::uint64_t>();
    const auto at = std::find_if(info.devices.begin(), info.devices.end(),
                                 [id](cl_device_id device) { return within(device, id); });
    take(static_cast<std::size_t>(at - info.devices.begin()), reply);
  }
  return reply.finished() ? CL_SUCCESS : m.malformed();
}

/// Only who asks waits for them: a platform may have to compile all kernels first.
cl_int give_sizes(cl_program program, const program_info& info, bool any, const asked& to) {
  std::vector<std::size_t> sizes(info.devices.size());
  const bool wanted = any && to.value && to.size >= sizes.size() * sizeof sizes[0];
  const cl_int code = !wanted ? CL_SUCCESS
                              : ask_binaries(program, info, CL_PROGRAM_BINARY_SIZES,
                                             [&](std::size_t at, wire::reader& answer) {
                                               const auto size = answer.get<std::uint64_t>();
                                               if (at < sizes.size())
                                                 sizes[at] = marshal::opencl::size_here(size);
                                             });
  return code == CL_SUCCESS ? to.list(sizes) : code;
}

/// One row of bytes for each device, into the program's places where it gives some.
cl_int give_binaries(cl_program program, const program_info& info, const asked& to) {
  const std::size_t size = info.devices.size() * sizeof(unsigned char*);
  if (to.value && to.size < size) return CL_INVALID_VALUE;
  if (to.wanted) *to.wanted = size;
  if (!to.value) return CL_SUCCESS;
  auto* const* const places = static_cast<unsigned char* const*>(to.value);
  return ask_binaries(program, info, CL_PROGRAM_BINARIES, [&](std::size_t at, wire::reader& answer) {
    const auto binary = answer.sized();
    unsigned char* const place = at < info.devices.size() ? places[at] : nullptr;
    if (place && !binary.empty()) std::memcpy(place, binary.data(), binary.size());
  });
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
  const std::string source = text_for_server(info->source);
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
    if (!has(*in, device_list[i])) return fail(errcode_ret, CL_INVALID_DEVICE);
    const bool empty = lengths[i] == 0 || !binaries[i];
    if (binary_status) binary_status[i] = empty ? CL_INVALID_VALUE : CL_SUCCESS;
    if (empty) return fail(errcode_ret, CL_INVALID_VALUE);
    body.devices.push_back(id_of(device_list[i]));
    body.lengths.push_back(lengths[i]);
    const auto* const first = reinterpret_cast<const std::byte*>(binaries[i]);
    all.insert(all.end(), first, first + lengths[i]);
  }
  auto info = std::make_unique<program_info>();
  program_info& made = *info;
  made.context = needed(context);
  made.devices.assign(device_list, device_list + num_devices);
  made.form = program_form::binary;
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
    made.loaded = std::make_shared<marshal::opencl::build_reply>(
        marshal::take_body<marshal::opencl::build_reply>(reply));
    return reply.finished() ? CL_SUCCESS : m.malformed();
  });
}

/// The device says whether it understands the language.
cl_program clCreateProgramWithIL(cl_context context, const void* il, std::size_t length,
                                 cl_int* errcode_ret) {
  const auto* const in = find<context_info>(context);
  if (!in) return fail(errcode_ret, CL_INVALID_CONTEXT);
  if (!il || length == 0) return fail(errcode_ret, CL_INVALID_VALUE);
  auto info = std::make_unique<program_info>();
  info->context = needed(context);
  info->devices = in->devices;
  info->form = program_form::il;
  info->il.assign(static_cast<const std::byte*>(il), static_cast<const std::byte*>(il) + length);
  const std::span<const std::byte> bytes = info->il;  // lives as long as the program
  return create<cl_program>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    sent_bytes text;
    if (const cl_int code = send_bytes(bytes, text); code) return code;
    message m(opcode::clCreateProgramWithIL);
    marshal::put_body(m.body(), marshal::opencl::source_body{id, id_of(context), text.about});
    return m.call(text.rest);
  });
}

cl_program clCreateProgramWithBuiltInKernels(cl_context context, cl_uint num_devices,
                                             const cl_device_id* device_list, const char* names,
                                             cl_int* errcode_ret) {
  const auto* const in = find<context_info>(context);
  if (!in) return fail(errcode_ret, CL_INVALID_CONTEXT);
  if (num_devices == 0 || !device_list || !names) return fail(errcode_ret, CL_INVALID_VALUE);
  marshal::opencl::built_in_body body{0, id_of(context), {}, names};
  for (cl_uint i = 0; i < num_devices; ++i) {
    if (!has(*in, device_list[i])) return fail(errcode_ret, CL_INVALID_DEVICE);
    body.devices.push_back(id_of(device_list[i]));
  }
  auto info = std::make_unique<program_info>();
  program_info& made = *info;
  made.context = needed(context);
  made.devices.assign(device_list, device_list + num_devices);
  made.form = program_form::built_in;
  return create<cl_program>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    body.handle = id;
    message m(opcode::clCreateProgramWithBuiltInKernels);
    marshal::put_body(m.body(), body);
    if (const cl_int code = m.call(); code != CL_SUCCESS) return code;
    wire::reader reply = m.reply();
    made.built = std::make_shared<marshal::opencl::build_reply>(
        marshal::take_body<marshal::opencl::build_reply>(reply));
    return reply.finished() ? CL_SUCCESS : m.malformed();
  });
}

cl_int clSetProgramSpecializationConstant(cl_program program, cl_uint id, std::size_t size,
                                          const void* value) {
  if (!alive(program)) return CL_INVALID_PROGRAM;
  if (size == 0 || !value) return CL_INVALID_VALUE;
  // Whether the device or the program is the wrong one, the device says.
  return remote<opcode::clSetProgramSpecializationConstant>(0, program, id, size, value);
}

cl_int clRetainProgram(cl_program program) { return retain(program); }
cl_int clReleaseProgram(cl_program program) { return release(program); }

/// Programs with constructors and destructors were taken out of the standard again: no device has them.
cl_int clSetProgramReleaseCallback(cl_program program, notify, void*) {
  return alive(program) ? CL_INVALID_OPERATION : CL_INVALID_PROGRAM;
}

cl_int clGetProgramInfo(cl_program program, cl_program_info name, std::size_t size, void* value,
                        std::size_t* wanted) {
  auto* const info = find<program_info>(program);
  if (!info) return CL_INVALID_PROGRAM;
  const asked to{size, value, wanted};
  const build built = built_of(*info);
  const bool usable = is_executable(built);
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
      return to.list(info->il);
    case CL_PROGRAM_BINARY_SIZES:
      return give_sizes(program, *info, built || info->loaded, to);
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
  const build last = built_of(*info), built = last ? last : info->loaded;
  const marshal::opencl::device_build none{0, CL_BUILD_NONE, CL_PROGRAM_BINARY_TYPE_NONE, 0, {}, {}};
  const auto* about = build_for(built, device);
  if (!about) about = &none;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_PROGRAM_BUILD_STATUS:
      return to.one(info->building.load() ? cl_build_status{CL_BUILD_IN_PROGRESS}
                                          : cl_build_status{about->status});
    case CL_PROGRAM_BUILD_OPTIONS:
      return to.text(about->options);
    case CL_PROGRAM_BUILD_LOG:
      return to.text(about->log);
    case CL_PROGRAM_BINARY_TYPE:
      return to.one(cl_program_binary_type{about->binary_type});
    case CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE:
      return to.one(marshal::opencl::size_here(about->global_variables));
    default:
      return CL_INVALID_VALUE;
  }
}

}  // namespace outboard::frontend::opencl::ends
