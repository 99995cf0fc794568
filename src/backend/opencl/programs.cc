// Programs, whatever they are made of, and kernels. Builds are in builds.cc.
#include "backend/opencl/ends.hh"
#include "backend/opencl/program_facts.hh"
#include "backend/opencl/questions.hh"

namespace outboard::backend::opencl {

using namespace marshal::opencl;
using api::opencl::function_table;

namespace {

named_devices named(const std::vector<cl_device_id>& devices, const ids& names) {
  named_devices both;
  for (std::size_t i = 0; i < devices.size(); ++i) both.emplace_back(devices[i], names[i]);
  return both;
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
  std::vector<cl_device_id> devices;
  if (code == CL_SUCCESS) code = resolve_all(c, body.devices, devices);
  std::vector<std::size_t> lengths;
  std::vector<const unsigned char*> binaries;
  std::size_t at = 0;
  for (std::size_t i = 0; i < body.lengths.size(); ++i) {
    if (body.lengths[i] > bytes->size() - at) return outcome::malformed();
    binaries.push_back(reinterpret_cast<const unsigned char*>(bytes->data()) + at);
    lengths.push_back(body.lengths[i]);
    at += body.lengths[i];
  }
  std::vector<cl_int> each(body.devices.size(), CL_INVALID_VALUE);
  cl_program made = nullptr;
  if (code == CL_SUCCESS) {
    made = own(c).table().clCreateProgramWithBinary(context, static_cast<cl_uint>(devices.size()),
                                                    devices.data(), lengths.data(), binaries.data(),
                                                    each.data(), &code);
  }
  for (const cl_int status : each) c.reply.put(status);
  if (code == CL_SUCCESS) {
    build_reply loaded;
    describe(own(c).table(), made, named(devices, body.devices), false, loaded);
    marshal::put_body(c.reply, loaded);
  }
  return keep(c, body.handle, made, code);
}

outcome clCreateProgramWithIL(call& c) {
  const auto body = marshal::take_body<source_body>(c.body);
  if (!c.body.ok()) return outcome::malformed();
  const auto il = own(c).take_bytes(body.text, c.body.rest());
  if (!il) return outcome::malformed();
  auto* const create = own(c).table().clCreateProgramWithIL;
  cl_context context = nullptr;
  cl_program made = nullptr;
  cl_int code = resolve(c, body.context, context);
  if (code == CL_SUCCESS && !create) code = CL_INVALID_OPERATION;
  if (code == CL_SUCCESS) made = create(context, il->data(), il->size(), &code);
  return keep(c, body.handle, made, code);
}

/// Usable at once: nothing is built.
outcome clCreateProgramWithBuiltInKernels(call& c) {
  built_in_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const function_table& table = own(c).table();
  cl_context context = nullptr;
  cl_int code = resolve(c, body.context, context);
  std::vector<cl_device_id> devices;
  if (code == CL_SUCCESS) code = resolve_all(c, body.devices, devices);
  if (code == CL_SUCCESS && !table.clCreateProgramWithBuiltInKernels) code = CL_INVALID_OPERATION;
  cl_program made = nullptr;
  if (code == CL_SUCCESS) {
    made = table.clCreateProgramWithBuiltInKernels(context, static_cast<cl_uint>(devices.size()),
                                                   devices.data(), body.names.c_str(), &code);
  }
  if (code == CL_SUCCESS) {
    build_reply reply;
    describe(table, made, named(devices, body.devices), true, reply);
    marshal::put_body(c.reply, reply);
  }
  return keep(c, body.handle, made, code);
}

/// CL_PROGRAM_BINARIES and their sizes, one a device: everything else the client knows.
outcome clGetProgramInfo(call& c) {
  question_body body;
  if (!take_all(c, body) || (body.name != CL_PROGRAM_BINARIES && body.name != CL_PROGRAM_BINARY_SIZES))
    return outcome::malformed();
  const function_table& table = own(c).table();
  cl_program program = nullptr;
  if (const cl_int code = resolve(c, body.object, program); code != CL_SUCCESS) return outcome::answer(code);
  std::vector<std::uint64_t> devices;
  for (const cl_device_id device : devices_of(table, program))
    devices.push_back(own(c).objects().name_of(api::handle_kind::cl_device, device));
  table.clRetainProgram(program);
  c.give_up_turn();
  const program_doors::stay alone(own(c).doors(), program);
  const auto sizes = binary_sizes(table, program);
  std::vector<std::vector<std::uint8_t>> binaries;
  std::vector<unsigned char*> places;
  cl_int code = sizes.size() == devices.size() ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
  if (code == CL_SUCCESS && body.name == CL_PROGRAM_BINARIES) {
    for (const std::size_t size : sizes) places.push_back(binaries.emplace_back(size).data());
    code = table.clGetProgramInfo(program, CL_PROGRAM_BINARIES, places.size() * sizeof places[0],
                                  places.data(), nullptr);
  }
  table.clReleaseProgram(program);
  if (code != CL_SUCCESS) return outcome::answer(code);
  c.reply.put(static_cast<std::uint64_t>(sizes.size()));
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    c.reply.put(devices[i]);
    if (binaries.empty()) {
      c.reply.put(static_cast<std::uint64_t>(sizes[i]));
    } else {
      c.reply.sized(std::as_bytes(std::span(binaries[i])));
    }
  }
  return outcome::answer(CL_SUCCESS);
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
  if (body.form > argument_form::local) return outcome::malformed();
  cl_kernel kernel = nullptr;
  cl_int code = resolve(c, body.kernel, kernel);
  if (code != CL_SUCCESS) return outcome::answer(code);
  auto* const set = own(c).table().clSetKernelArg;
  kernel_arguments& arguments = own(c).arguments();
  if (body.form == argument_form::local) {
    code = set(kernel, body.index, body.size, nullptr);
  } else if (body.form == argument_form::value) {
    code = arguments.check_value(kernel, body.index, body.value.size());
    if (code == CL_SUCCESS) code = set(kernel, body.index, body.value.size(), body.value.data());
  } else {
    void* native = nullptr;
    const auto kind = static_cast<api::handle_kind>(wire::handle{body.handle}.kind());
    code = arguments.check_object(kernel, body.index, body.handle ? kind : api::handle_kind::none);
    if (code == CL_SUCCESS && body.handle) code = own(c).objects().native_of(kind, body.handle, native);
    if (code == CL_SUCCESS) code = set(kernel, body.index, sizeof native, &native);
  }
  // The caller of a call has heard of it, and the kernel has its argument still.
  if (code == CL_SUCCESS || c.header.kind == wire::frame_kind::post) arguments.note(kernel, body.index, code);
  return outcome::answer(code);
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
  if (code != CL_SUCCESS) return outcome::answer(code);
  std::size_t answer[3] = {}, size = 0;  // the longest: a work size in three dimensions
  code = ask(kernel, device, body.name, body.input.size(), body.input.data(), sizeof answer, answer, &size);
  if (code != CL_SUCCESS) return outcome::answer(code);
  c.reply.bytes(std::as_bytes(std::span(answer)).first(std::min(size, sizeof answer)));
  return outcome::answer(CL_SUCCESS);
}

}  // namespace ends
}  // namespace outboard::backend::opencl
