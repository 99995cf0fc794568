#include "frontend/opencl/answer.hh"
#include "frontend/opencl/argument_size.hh"
#include "frontend/opencl/build/build.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/launch_shape.hh"
#include "frontend/opencl/message.hh"
#include "marshal/opencl/widths.hh"

namespace outboard::frontend::opencl::ends {
namespace {

using marshal::opencl::argument_body;
using marshal::opencl::argument_facts;
using marshal::opencl::argument_form;

build usable_build(program_info& program) {
  build built = built_of(program);
  return is_executable(built) ? built : nullptr;
}

/// Programs make a kernel anew for each launch: what is known of one's arguments is known of all.
std::shared_ptr<accepted_sizes> accepted_of(program_info& program, const build& facts,
                                            const marshal::opencl::kernel_facts& about) {
  const std::lock_guard lock(program.mutex);
  if (program.accepted_by != facts) {
    program.accepted_by = facts;
    program.accepted.clear();
    for (const auto& kernel : facts->kernels)
      program.accepted.push_back(std::make_shared<accepted_sizes>(kernel.arguments.size()));
  }
  return program.accepted[static_cast<std::size_t>(&about - facts->kernels.data())];
}

std::unique_ptr<kernel_info> info_of(cl_program program, program_info& of, build facts,
                                     const marshal::opencl::kernel_facts& about) {
  auto info = std::make_unique<kernel_info>();
  info->program = needed(program);
  info->context = of.context;
  info->about = &about;
  info->accepted = accepted_of(of, facts, about);
  info->facts = std::move(facts);
  info->given.resize(about.arguments.size());
  of.kernels.fetch_add(1);
  return info;
}

cl_kernel make_kernel(cl_program program, program_info& of, const build& facts,
                      const marshal::opencl::kernel_facts& about, cl_int* errcode_ret) {
  return create<cl_kernel>(info_of(program, of, facts, about), errcode_ret, [&](std::uint64_t id) {
    return post_body(opcode::clCreateKernel, marshal::opencl::kernel_body{id, id_of(program), about.name});
  });
}

/// The argument as it travels, as far as the front-end knows what it is. `certain`: the device can only
/// agree.
cl_int shape_argument(const argument_facts& about, std::size_t size, const void* value, argument_body& body,
                      bool& certain) {
  certain = about.known;
  if (about.known && about.address == CL_KERNEL_ARG_ADDRESS_LOCAL) {
    if (value) return CL_INVALID_ARG_VALUE;
    if (size == 0) return CL_INVALID_ARG_SIZE;
  } else if (!value && (!about.known || about.address == CL_KERNEL_ARG_ADDRESS_PRIVATE)) {
    if (about.known) return CL_INVALID_ARG_VALUE;  // else local memory, or a null object
  }
  const bool pointer = about.known && (about.address == CL_KERNEL_ARG_ADDRESS_GLOBAL ||
                                       about.address == CL_KERNEL_ARG_ADDRESS_CONSTANT ||
                                       (about.type_qualifier & CL_KERNEL_ARG_TYPE_PIPE) != 0);
  if (pointer && size != sizeof(cl_mem)) return CL_INVALID_ARG_SIZE;
  if (!value) {
    body.form = pointer ? argument_form::handle : argument_form::local;
    body.size = size;
    return CL_SUCCESS;
  }
  cell* named = nullptr;
  if (size == sizeof named) std::memcpy(&named, value, sizeof named);
  if (pointer) {
    if (named && !alive(named, handle_kind::cl_mem)) return CL_INVALID_MEM_OBJECT;
    body.form = argument_form::handle;
    body.handle = named ? named->id : 0;
    return CL_SUCCESS;
  }
  if (about.known && (about.type == "sampler_t" || about.type.starts_with("image"))) {
    const bool sampler = about.type == "sampler_t";
    if (size != sizeof named) return CL_INVALID_ARG_SIZE;
    if (!alive(named, sampler ? handle_kind::cl_sampler : handle_kind::cl_mem))
      return sampler ? CL_INVALID_SAMPLER : CL_INVALID_MEM_OBJECT;
    body.form = argument_form::handle;
    body.handle = named->id;
    return CL_SUCCESS;
  }
  if (about.known && about.type == "queue_t") {
    if (size != sizeof named) return CL_INVALID_ARG_SIZE;
    if (!alive(named, handle_kind::cl_command_queue)) return CL_INVALID_DEVICE_QUEUE;
    body.form = argument_form::handle;
    body.handle = named->id;
    return CL_SUCCESS;
  }
  // A pointer's bytes that are one of our objects are one, where nothing else is known of this argument, or
  // its type may be an object's by another name.
  if ((!about.known || size_of_type(about.type) == 0) && is_cell(named)) {
    body.form = argument_form::handle;
    body.handle = named->id;
    return CL_SUCCESS;
  }
  const auto* const bytes = static_cast<const std::uint8_t*>(value);
  body.value.assign(bytes, bytes + size);
  const std::size_t expected = about.known ? size_of_type(about.type) : 0;
  certain = expected != 0;
  return expected && expected != size ? CL_INVALID_ARG_SIZE : CL_SUCCESS;
}

}  // namespace

cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* errcode_ret) {
  auto* const of = find<program_info>(program);
  if (!of) return fail(errcode_ret, CL_INVALID_PROGRAM);
  const build facts = usable_build(*of);
  if (!facts) return fail(errcode_ret, CL_INVALID_PROGRAM_EXECUTABLE);
  if (!name) return fail(errcode_ret, CL_INVALID_VALUE);
  const auto found = std::find_if(facts->kernels.begin(), facts->kernels.end(),
                                  [&](const auto& kernel) { return kernel.name == name; });
  if (found == facts->kernels.end()) return fail(errcode_ret, CL_INVALID_KERNEL_NAME);
  return make_kernel(program, *of, facts, *found, errcode_ret);
}

cl_int clCreateKernelsInProgram(cl_program program, cl_uint num_kernels, cl_kernel* kernels,
                                cl_uint* num_kernels_ret) {
  auto* const of = find<program_info>(program);
  if (!of) return CL_INVALID_PROGRAM;
  const build facts = usable_build(*of);
  if (!facts) return CL_INVALID_PROGRAM_EXECUTABLE;
  if (kernels && num_kernels < facts->kernels.size()) return CL_INVALID_VALUE;
  for (std::size_t i = 0; kernels && i < facts->kernels.size(); ++i) {
    cl_int code = CL_SUCCESS;
    kernels[i] = make_kernel(program, *of, facts, facts->kernels[i], &code);
    if (code == CL_SUCCESS) continue;
    while (i > 0) (void)release(kernels[--i]);
    return code;
  }
  if (num_kernels_ret) *num_kernels_ret = static_cast<cl_uint>(facts->kernels.size());
  return CL_SUCCESS;
}

cl_kernel clCloneKernel(cl_kernel source, cl_int* errcode_ret) {
  auto* const from = find<kernel_info>(source);
  if (!from) return fail(errcode_ret, CL_INVALID_KERNEL);
  const cl_program program = from->program.get();
  auto info = info_of(program, *find<program_info>(program), from->facts, *from->about);
  {
    const std::lock_guard lock(from->mutex);
    info->given = from->given;
  }
  return create<cl_kernel>(std::move(info), errcode_ret, [&](std::uint64_t id) {
    return remote<opcode::clCloneKernel>(id, source, static_cast<cl_int*>(nullptr));
  });
}

cl_int clRetainKernel(cl_kernel kernel) { return retain(kernel); }
cl_int clReleaseKernel(cl_kernel kernel) { return release(kernel); }

cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, std::size_t size, const void* value) {
  auto* const info = find<kernel_info>(kernel);
  if (!info) return CL_INVALID_KERNEL;
  if (index >= info->about->arguments.size()) return CL_INVALID_ARG_INDEX;
  argument_body body;
  body.kernel = id_of(kernel);
  body.index = index;
  bool certain = false;
  const cl_int wrong = shape_argument(info->about->arguments[index], size, value, body, certain);
  if (wrong != CL_SUCCESS) return wrong;
  const std::lock_guard lock(info->mutex);
  message m(opcode::clSetKernelArg);
  marshal::put_body(m.body(), body);
  std::atomic<std::size_t>& accepted = (*info->accepted)[index];
  const bool sure = certain || accepted.load(std::memory_order_relaxed) == size + 1;
  const cl_int code = sure ? m.post() : m.call();
  if (code != CL_SUCCESS) return code;
  accepted.store(size + 1, std::memory_order_relaxed);
  info->given[index] = size + 1;
  return CL_SUCCESS;
}

cl_int clGetKernelInfo(cl_kernel kernel, cl_kernel_info name, std::size_t size, void* value,
                       std::size_t* wanted) {
  const auto* const info = find<kernel_info>(kernel);
  if (!info) return CL_INVALID_KERNEL;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_KERNEL_FUNCTION_NAME:
      return to.text(info->about->name);
    case CL_KERNEL_NUM_ARGS:
      return to.one(static_cast<cl_uint>(info->about->arguments.size()));
    case CL_KERNEL_REFERENCE_COUNT:
      return to.one(references(kernel));
    case CL_KERNEL_CONTEXT:
      return to.one(info->context.get());
    case CL_KERNEL_PROGRAM:
      return to.one(info->program.get());
    case CL_KERNEL_ATTRIBUTES:
      return to.text(info->about->attributes);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clGetKernelArgInfo(cl_kernel kernel, cl_uint index, cl_kernel_arg_info name, std::size_t size,
                          void* value, std::size_t* wanted) {
  const auto* const info = find<kernel_info>(kernel);
  if (!info) return CL_INVALID_KERNEL;
  if (index >= info->about->arguments.size()) return CL_INVALID_ARG_INDEX;
  const argument_facts& about = info->about->arguments[index];
  if (!about.known) return CL_KERNEL_ARG_INFO_NOT_AVAILABLE;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_KERNEL_ARG_ADDRESS_QUALIFIER:
      return to.one(cl_kernel_arg_address_qualifier{about.address});
    case CL_KERNEL_ARG_ACCESS_QUALIFIER:
      return to.one(cl_kernel_arg_access_qualifier{about.access});
    case CL_KERNEL_ARG_TYPE_NAME:
      return to.text(about.type);
    case CL_KERNEL_ARG_TYPE_QUALIFIER:
      return to.one(cl_kernel_arg_type_qualifier{about.type_qualifier});
    case CL_KERNEL_ARG_NAME:
      return to.text(about.name);
    default:
      return CL_INVALID_VALUE;
  }
}

cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info name,
                                std::size_t size, void* value, std::size_t* wanted) {
  const auto* const info = find<kernel_info>(kernel);
  if (!info) return CL_INVALID_KERNEL;
  const auto& devices = find<program_info>(info->program.get())->devices;
  if (!device && devices.size() == 1) device = devices.front();
  const auto* const found = alive(device) ? facts_for(*info, device) : nullptr;
  if (!found) return CL_INVALID_DEVICE;
  const marshal::opencl::work_group_facts& about = *found;
  const asked to{size, value, wanted};
  switch (name) {
    case CL_KERNEL_WORK_GROUP_SIZE:
      return to.one(marshal::opencl::size_here(about.size));
    case CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE:
      return to.one(marshal::opencl::size_here(about.multiple));
    case CL_KERNEL_LOCAL_MEM_SIZE:
      return to.one(cl_ulong{about.local_memory});
    case CL_KERNEL_PRIVATE_MEM_SIZE:
      return to.one(cl_ulong{about.private_memory});
    case CL_KERNEL_COMPILE_WORK_GROUP_SIZE:
      return to.list(std::vector<std::size_t>(about.compiled.begin(), about.compiled.end()));
    default:  // CL_KERNEL_GLOBAL_WORK_SIZE: of built-in kernels and custom devices, which there are none of
      return CL_INVALID_VALUE;
  }
}

cl_int clGetKernelSubGroupInfo(cl_kernel kernel, cl_device_id device, cl_kernel_sub_group_info name,
                               std::size_t input_size, const void* input, std::size_t size, void* value,
                               std::size_t* wanted) {
  if (!alive(kernel)) return CL_INVALID_KERNEL;
  if (device && !alive(device)) return CL_INVALID_DEVICE;
  marshal::opencl::question_body body{id_of(kernel), id_of(device), name, {}};
  // All that is asked with, and all that is answered, are sizes.
  if (input) body.input = marshal::opencl::widened({static_cast<const std::uint8_t*>(input), input_size});
  message m(opcode::clGetKernelSubGroupInfo);
  marshal::put_body(m.body(), body);
  if (const cl_int code = m.call(); code != CL_SUCCESS) return code;
  const auto rest = m.reply().rest();
  const auto* const first = reinterpret_cast<const std::uint8_t*>(rest.data());
  return asked{size, value, wanted}.list(marshal::opencl::narrowed({first, first + rest.size()}));
}

}  // namespace outboard::frontend::opencl::ends
