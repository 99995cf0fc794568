// Programs and kernels: built on the host, and told about as a whole, so that the questions that programs ask
// about them need not travel.
#include <memory>

#include "backend/opencl/ends.hh"
#include "backend/opencl/questions.hh"

namespace outboard::backend::opencl {
namespace {

using namespace marshal::opencl;
using api::opencl::function_table;

/// Of a program as it was at its build: what the reply tells, in one order.
std::vector<cl_device_id> devices_of(const function_table& table, cl_program program) {
  return list_of<cl_device_id>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetProgramInfo(program, CL_PROGRAM_DEVICES, size, to, wanted);
  });
}

device_build build_of(const function_table& table, cl_program program, cl_device_id device) {
  const auto ask = [&](cl_program_build_info name) {
    return [&table, program, device, name](std::size_t size, void* to, std::size_t* wanted) {
      return table.clGetProgramBuildInfo(program, device, name, size, to, wanted);
    };
  };
  device_build b;
  b.status = value_of<cl_build_status>(ask(CL_PROGRAM_BUILD_STATUS)).value_or(CL_BUILD_NONE);
  b.binary_type = value_of<cl_program_binary_type>(ask(CL_PROGRAM_BINARY_TYPE)).value_or(0);
  b.global_variables = value_of<std::size_t>(ask(CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE)).value_or(0);
  b.options = text_of(ask(CL_PROGRAM_BUILD_OPTIONS));
  b.log = text_of(ask(CL_PROGRAM_BUILD_LOG));
  return b;
}

argument_facts argument_of(const function_table& table, cl_kernel kernel, cl_uint index) {
  argument_facts a;
  if (!table.clGetKernelArgInfo) return a;
  const auto ask = [&](cl_kernel_arg_info name) {
    return [&table, kernel, index, name](std::size_t size, void* to, std::size_t* wanted) {
      return table.clGetKernelArgInfo(kernel, index, name, size, to, wanted);
    };
  };
  const auto address = value_of<cl_kernel_arg_address_qualifier>(ask(CL_KERNEL_ARG_ADDRESS_QUALIFIER));
  a.known = address.has_value();
  if (!a.known) return a;
  a.address = *address;
  a.access = value_of<cl_kernel_arg_access_qualifier>(ask(CL_KERNEL_ARG_ACCESS_QUALIFIER)).value_or(0);
  a.type_qualifier = value_of<cl_kernel_arg_type_qualifier>(ask(CL_KERNEL_ARG_TYPE_QUALIFIER)).value_or(0);
  a.type = text_of(ask(CL_KERNEL_ARG_TYPE_NAME));
  a.name = text_of(ask(CL_KERNEL_ARG_NAME));
  return a;
}

work_group_facts work_group_of(const function_table& table, cl_kernel kernel, cl_device_id device) {
  const auto ask = [&](cl_kernel_work_group_info name) {
    return [&table, kernel, device, name](std::size_t size, void* to, std::size_t* wanted) {
      return table.clGetKernelWorkGroupInfo(kernel, device, name, size, to, wanted);
    };
  };
  work_group_facts w;
  w.size = value_of<std::size_t>(ask(CL_KERNEL_WORK_GROUP_SIZE)).value_or(0);
  w.multiple = value_of<std::size_t>(ask(CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE)).value_or(0);
  w.local_memory = value_of<cl_ulong>(ask(CL_KERNEL_LOCAL_MEM_SIZE)).value_or(0);
  w.private_memory = value_of<cl_ulong>(ask(CL_KERNEL_PRIVATE_MEM_SIZE)).value_or(0);
  const auto compiled = list_of<std::size_t>(ask(CL_KERNEL_COMPILE_WORK_GROUP_SIZE));
  w.compiled.assign(compiled.begin(), compiled.end());
  w.compiled.resize(3);
  return w;
}

kernel_facts facts_of(const function_table& table, cl_kernel kernel, std::span<const cl_device_id> devices) {
  const auto ask = [&](cl_kernel_info name) {
    return [&table, kernel, name](std::size_t size, void* to, std::size_t* wanted) {
      return table.clGetKernelInfo(kernel, name, size, to, wanted);
    };
  };
  kernel_facts k;
  k.name = text_of(ask(CL_KERNEL_FUNCTION_NAME));
  k.attributes = text_of(ask(CL_KERNEL_ATTRIBUTES));
  const cl_uint arguments = value_of<cl_uint>(ask(CL_KERNEL_NUM_ARGS)).value_or(0);
  for (cl_uint i = 0; i < arguments; ++i) k.arguments.push_back(argument_of(table, kernel, i));
  for (const cl_device_id device : devices) k.devices.push_back(work_group_of(table, kernel, device));
  return k;
}

void add_kernels(const function_table& table, cl_program program, std::span<const cl_device_id> devices,
                 build_reply& reply) {
  cl_uint count = 0;
  if (table.clCreateKernelsInProgram(program, 0, nullptr, &count) != CL_SUCCESS || count == 0) return;
  std::vector<cl_kernel> kernels(count);
  if (table.clCreateKernelsInProgram(program, count, kernels.data(), nullptr) != CL_SUCCESS) return;
  for (const cl_kernel kernel : kernels) {
    reply.kernels.push_back(facts_of(table, kernel, devices));
    table.clReleaseKernel(kernel);
  }
}

/// `ids`: the client's names of the devices.
void add_builds(const function_table& table, cl_program program, std::span<const cl_device_id> devices,
                const ids& names, build_reply& reply) {
  const auto sizes = list_of<std::size_t>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, size, to, wanted);
  });
  for (std::size_t i = 0; i < devices.size(); ++i) {
    reply.devices.push_back(build_of(table, program, devices[i]));
    reply.devices.back().device = names[i];
    if (i < sizes.size()) reply.devices.back().binary_size = sizes[i];
  }
}

}  // namespace

namespace ends {

outcome clCreateProgramWithSource(call& c) {
  const auto body = marshal::take_body<source_body>(c.body);
  if (!c.body.ok()) return outcome::malformed();
  const auto text = own(c).take_bytes(body.text, c.body.rest());
  if (!text) return outcome::malformed();
  cl_context context = nullptr;
  cl_program made = nullptr;
  cl_int code = resolve(c, body.context, context);
  if (code == CL_SUCCESS) {
    const char* first = text->empty() ? "" : reinterpret_cast<const char*>(text->data());
    const std::size_t length = text->size();
    // A length of zero means that the text ends with a zero byte.
    made = own(c).table().clCreateProgramWithSource(context, 1, &first, length ? &length : nullptr, &code);
  }
  return keep(c, body.handle, made, code);
}

outcome clCreateProgramWithBinary(call& c) {
  const auto body = marshal::take_body<binary_body>(c.body);
  if (!c.body.ok() || body.devices.size() != body.lengths.size()) return outcome::malformed();
  const auto bytes = own(c).take_bytes(body.binaries, c.body.rest());
  if (!bytes) return outcome::malformed();
  cl_context context = nullptr;
  cl_int code = resolve(c, body.context, context);
  std::vector<cl_device_id> devices(body.devices.size());
  std::vector<std::size_t> lengths;
  std::vector<const unsigned char*> binaries;
  std::size_t at = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (code == CL_SUCCESS) code = resolve(c, body.devices[i], devices[i]);
    if (body.lengths[i] > bytes->size() - at) return outcome::malformed();
    binaries.push_back(reinterpret_cast<const unsigned char*>(bytes->data()) + at);
    lengths.push_back(body.lengths[i]);
    at += body.lengths[i];
  }
  std::vector<cl_int> each(devices.size(), CL_INVALID_VALUE);
  cl_program made = nullptr;
  if (code == CL_SUCCESS) {
    made = own(c).table().clCreateProgramWithBinary(context, static_cast<cl_uint>(devices.size()),
                                                    devices.data(), lengths.data(), binaries.data(),
                                                    each.data(), &code);
  }
  for (const cl_int status : each) c.reply.put(status);
  return keep(c, body.handle, made, code);
}

/// The other lanes go on while the compiler works. A build that fails is told about as well as one that does
/// not.
outcome clBuildProgram(call& c) {
  build_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const function_table& table = own(c).table();
  cl_program program = nullptr;
  cl_int code = resolve(c, body.program, program);
  std::vector<cl_device_id> devices(body.devices.size());
  for (std::size_t i = 0; i < devices.size() && code == CL_SUCCESS; ++i)
    code = resolve(c, body.devices[i], devices[i]);
  if (code == CL_SUCCESS) code = table.clRetainProgram(program);
  if (code != CL_SUCCESS) return outcome::answer_code(code);
  const auto all = devices_of(table, program);
  ids names;
  for (const cl_device_id device : all)
    names.push_back(c.objects().name_of(api::handle_kind::cl_device, device));
  c.give_up_turn();
  build_reply reply;
  // With it the client knows what each argument is, and need not ask when it is set.
  const std::string options = body.options + (body.options.empty() ? "" : " ") + "-cl-kernel-arg-info";
  reply.code =
      table.clBuildProgram(program, static_cast<cl_uint>(devices.size()),
                           devices.empty() ? nullptr : devices.data(), options.c_str(), nullptr, nullptr);
  add_builds(table, program, all, names, reply);
  for (device_build& each : reply.devices) each.options = body.options;
  if (reply.code == CL_SUCCESS) add_kernels(table, program, all, reply);
  table.clReleaseProgram(program);
  marshal::put_body(c.reply, reply);
  return outcome::answer_code(CL_SUCCESS);
}

/// CL_PROGRAM_BINARIES alone: one row of bytes a device. Everything else the client knows.
outcome clGetProgramInfo(call& c) {
  question_body body;
  if (!take_all(c, body) || body.name != CL_PROGRAM_BINARIES) return outcome::malformed();
  const function_table& table = own(c).table();
  cl_program program = nullptr;
  if (const cl_int code = resolve(c, body.object, program); code != CL_SUCCESS)
    return outcome::answer_code(code);
  const auto sizes = list_of<std::size_t>([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, size, to, wanted);
  });
  std::vector<std::vector<std::uint8_t>> binaries;
  std::vector<unsigned char*> places;
  for (const std::size_t size : sizes) places.push_back(binaries.emplace_back(size).data());
  const cl_int code = table.clGetProgramInfo(program, CL_PROGRAM_BINARIES, places.size() * sizeof places[0],
                                             places.data(), nullptr);
  if (code != CL_SUCCESS) return outcome::answer_code(code);
  const auto devices = devices_of(table, program);
  if (devices.size() != binaries.size()) return outcome::answer_code(CL_OUT_OF_RESOURCES);
  c.reply.put(static_cast<std::uint64_t>(binaries.size()));
  for (std::size_t i = 0; i < binaries.size(); ++i) {
    c.reply.put(c.objects().name_of(api::handle_kind::cl_device, devices[i]));
    c.reply.sized(std::as_bytes(std::span(binaries[i])));
  }
  return outcome::answer_code(CL_SUCCESS);
}

outcome clCreateKernel(call& c) {
  kernel_body body;
  if (!take_all(c, body)) return outcome::malformed();
  cl_program program = nullptr;
  cl_kernel made = nullptr;
  cl_int code = resolve(c, body.program, program);
  if (code == CL_SUCCESS) made = own(c).table().clCreateKernel(program, body.name.c_str(), &code);
  return keep(c, body.handle, made, code);
}

outcome clSetKernelArg(call& c) {
  argument_body body;
  if (!take_all(c, body)) return outcome::malformed();
  auto* const set = own(c).table().clSetKernelArg;
  cl_kernel kernel = nullptr;
  if (const cl_int code = resolve(c, body.kernel, kernel); code != CL_SUCCESS)
    return outcome::answer_code(code);
  if (body.form == argument_form::local)
    return outcome::answer_code(set(kernel, body.index, body.size, nullptr));
  if (body.form == argument_form::value)
    return outcome::answer_code(set(kernel, body.index, body.value.size(), body.value.data()));
  if (body.form != argument_form::handle) return outcome::malformed();
  void* native = nullptr;
  const auto kind = static_cast<api::handle_kind>(wire::handle{body.handle}.kind());
  if (body.handle) {
    if (const cl_int code = c.objects().native_of(kind, body.handle, native); code != CL_SUCCESS)
      return outcome::answer_code(code);
  }
  return outcome::answer_code(set(kernel, body.index, sizeof native, &native));
}

outcome clGetKernelSubGroupInfo(call& c) {
  question_body body;
  if (!take_all(c, body)) return outcome::malformed();
  auto* const ask = own(c).table().clGetKernelSubGroupInfo;
  cl_kernel kernel = nullptr;
  cl_device_id device = nullptr;
  cl_int code = resolve(c, body.object, kernel);
  if (code == CL_SUCCESS && body.device) code = resolve(c, body.device, device);
  if (code == CL_SUCCESS && !ask) code = CL_INVALID_OPERATION;
  if (code != CL_SUCCESS) return outcome::answer_code(code);
  std::size_t answer[3] = {}, size = 0;  // the longest: a work size in three dimensions
  code = ask(kernel, device, body.name, body.input.size(), body.input.data(), sizeof answer, answer, &size);
  if (code != CL_SUCCESS) return outcome::answer_code(code);
  c.reply.bytes(std::as_bytes(std::span(answer)).first(std::min(size, sizeof answer)));
  return outcome::answer_code(CL_SUCCESS);
}

}  // namespace ends
}  // namespace outboard::backend::opencl
