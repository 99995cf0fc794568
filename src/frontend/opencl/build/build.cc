// Programs compiled, linked and built: the compiler is the server's. With a function to call at the end the
// program does not wait; a thread of ours does.
#include "frontend/opencl/build/build.hh"

#include <system_error>
#include <thread>

#include "base/blocked_signals.hh"
#include "frontend/opencl/answer.hh"
#include "frontend/opencl/build/build_files.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl::ends {
namespace {

using marshal::opencl::build_reply;
using notify = void(CL_CALLBACK*)(cl_program, void*);

/// All of `known`, or those that are named.
cl_int check_devices(const std::vector<cl_device_id>& known, cl_uint count, const cl_device_id* list,
                     marshal::opencl::ids& wanted) {
  if ((count == 0) != (list == nullptr)) return CL_INVALID_VALUE;
  for (cl_uint i = 0; i < count; ++i) {
    if (std::find(known.begin(), known.end(), list[i]) == known.end()) return CL_INVALID_DEVICE;
    wanted.push_back(id_of(list[i]));
  }
  return CL_SUCCESS;
}

/// The request, by whichever thread waits for it; its reply's parts into `built`. CL_SUCCESS or what the
/// request itself got: how the build went is in `built`.
using question = std::function<cl_int(build_reply& built)>;

template <class Body>
cl_int ask_for_build(opcode code, const Body& body, build_reply& built) {
  message m(code);
  marshal::put_body(m.body(), body);
  if (const cl_int wrong = m.call(); wrong != CL_SUCCESS) return wrong;
  wire::reader reply = m.reply();
  built = marshal::take_body<build_reply>(reply);
  return reply.finished() ? CL_SUCCESS : m.malformed();
}

/// The build with this machine's files. What cannot be sent is a failed build, whose log says why.
template <class Body>
cl_int ask_with_files(opcode code, const program_info& info, const Body& body, files_for_build& files,
                      cl_int failed, build_reply& built) {
  if (!files.problem.empty()) {
    built = {failed, {}, {}};
    for (const cl_device_id device : info.devices) {
      built.devices.push_back({id_of(device), CL_BUILD_ERROR, CL_PROGRAM_BINARY_TYPE_NONE, 0, files.options,
                               "outboard: this program's files cannot be sent: " + files.problem + "\n"});
    }
    return CL_SUCCESS;
  }
  cl_int result = files.send();
  if (result == CL_SUCCESS) result = ask_for_build(code, body, built);
  if (result == CL_SUCCESS) files.answered(built);
  return result;
}

/// A build that the server could not even begin is one that failed.
void fill_failed(const program_info& info, cl_int code, build_reply& built) {
  built = {code, {}, {}};
  for (const cl_device_id device : info.devices)
    built.devices.push_back({id_of(device), CL_BUILD_ERROR, CL_PROGRAM_BINARY_TYPE_NONE, 0, {}, {}});
}

cl_int carry_out(program_info& info, const question& ask, bool keep_refusal) {
  auto built = std::make_shared<build_reply>();
  const cl_int code = ask(*built);
  if (code != CL_SUCCESS && keep_refusal) fill_failed(info, code, *built);
  const cl_int result = code == CL_SUCCESS ? built->code : code;
  if (code == CL_SUCCESS || keep_refusal) {
    const std::lock_guard lock(info.mutex);
    info.built = std::move(built);
  }
  info.building.store(false);
  return result;
}

/// False: there is no thread to be had.
bool in_background(cl_program program, program_info& info, const question& ask, notify pfn_notify,
                   void* user_data) {
  // Signals are the program's business (design section 5.4).
  const blocked_signals blocked;
  try {
    std::thread([=, &info, kept = needed(program)] {
      const at_home here(cell_of(program));
      (void)carry_out(info, ask, true);
      // Where the process ends meanwhile the program's functions are not called any more.
      if (link::instance().server()) pfn_notify(program, user_data);
    }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  return true;
}

cl_int begin(cl_program program, program_info& info, const question& ask, notify pfn_notify,
             void* user_data) {
  if (info.building.exchange(true)) return CL_INVALID_OPERATION;
  if (pfn_notify && in_background(program, info, ask, pfn_notify, user_data)) return CL_SUCCESS;
  const cl_int code = carry_out(info, ask, false);
  if (pfn_notify) pfn_notify(program, user_data);
  return code;
}

/// What clBuildProgram and clCompileProgram refuse alike.
cl_int check_build(cl_program program, program_info* info, cl_uint num_devices,
                   const cl_device_id* device_list, const char* options, notify pfn_notify,
                   const void* user_data, marshal::opencl::build_body& body) {
  if (!info) return CL_INVALID_PROGRAM;
  body.program = id_of(program);
  if (const cl_int code = check_devices(info->devices, num_devices, device_list, body.devices); code)
    return code;
  if (!pfn_notify && user_data) return CL_INVALID_VALUE;
  if (info->kernels.load()) return CL_INVALID_OPERATION;
  body.has_options = options != nullptr;
  if (options) body.options = options;
  return CL_SUCCESS;
}

cl_int ask_for_link(const marshal::opencl::link_body& body, bool& made, build_reply& built) {
  message m(opcode::clLinkProgram);
  marshal::put_body(m.body(), body);
  if (const cl_int wrong = m.call(); wrong != CL_SUCCESS) return wrong;
  wire::reader reply = m.reply();
  auto linked = marshal::take_body<marshal::opencl::link_reply>(reply);
  if (!reply.finished()) return m.malformed();
  made = linked.made;
  built = std::move(linked.built);
  return made ? CL_SUCCESS : built.code;
}

}  // namespace

cl_int clBuildProgram(cl_program program, cl_uint num_devices, const cl_device_id* device_list,
                      const char* options, notify pfn_notify, void* user_data) {
  auto* const info = find<program_info>(program);
  marshal::opencl::build_body body;
  if (const cl_int code =
          check_build(program, info, num_devices, device_list, options, pfn_notify, user_data, body);
      code)
    return code;
  const auto files = std::make_shared<files_for_build>(files_for_build::find({info}, body));
  const auto ask = [info, body, files](build_reply& built) {
    return ask_with_files(opcode::clBuildProgram, *info, body, *files, CL_BUILD_PROGRAM_FAILURE, built);
  };
  return begin(program, *info, ask, pfn_notify, user_data);
}

cl_int clCompileProgram(cl_program program, cl_uint num_devices, const cl_device_id* device_list,
                        const char* options, cl_uint num_headers, const cl_program* headers,
                        const char** names, notify pfn_notify, void* user_data) {
  auto* const info = find<program_info>(program);
  marshal::opencl::compile_body body;
  if (const cl_int code =
          check_build(program, info, num_devices, device_list, options, pfn_notify, user_data, body.build);
      code)
    return code;
  if ((num_headers == 0) != (headers == nullptr) || (num_headers == 0) != (names == nullptr))
    return CL_INVALID_VALUE;
  if (info->form != program_form::source && info->form != program_form::il) return CL_INVALID_OPERATION;
  std::vector<needed<cl_program>> kept;
  std::vector<const program_info*> texts{info};
  for (cl_uint i = 0; i < num_headers; ++i) {
    const auto* const header = find<program_info>(headers[i]);
    if (!header) return CL_INVALID_PROGRAM;
    if (!names[i]) return CL_INVALID_VALUE;
    kept.emplace_back(headers[i]);
    texts.push_back(header);
    body.headers.push_back(id_of(headers[i]));
    body.names.emplace_back(names[i]);
  }
  const auto files = std::make_shared<files_for_build>(files_for_build::find(texts, body.build));
  const auto ask = [info, body, kept, files](build_reply& built) {
    return ask_with_files(opcode::clCompileProgram, *info, body, *files, CL_COMPILE_PROGRAM_FAILURE, built);
  };
  return begin(program, *info, ask, pfn_notify, user_data);
}

cl_program clLinkProgram(cl_context context, cl_uint num_devices, const cl_device_id* device_list,
                         const char* options, cl_uint num_programs, const cl_program* programs,
                         notify pfn_notify, void* user_data, cl_int* errcode_ret) {
  const auto* const in = find<context_info>(context);
  if (!in) return fail(errcode_ret, CL_INVALID_CONTEXT);
  if (num_programs == 0 || !programs || (!pfn_notify && user_data))
    return fail(errcode_ret, CL_INVALID_VALUE);
  marshal::opencl::link_body body;
  body.context = id_of(context);
  if (const cl_int code = check_devices(in->devices, num_devices, device_list, body.devices); code)
    return fail(errcode_ret, code);
  std::vector<needed<cl_program>> kept;
  for (cl_uint i = 0; i < num_programs; ++i) {
    const auto* const part = find<program_info>(programs[i]);
    if (!part) return fail(errcode_ret, CL_INVALID_PROGRAM);
    if (part->building.load()) return fail(errcode_ret, CL_INVALID_OPERATION);
    kept.emplace_back(programs[i]);
    body.programs.push_back(id_of(programs[i]));
  }
  body.has_options = options != nullptr;
  if (options) body.options = options;
  auto info = std::make_unique<program_info>();
  program_info& linked = *info;
  linked.context = needed(context);
  linked.devices =
      device_list ? std::vector<cl_device_id>(device_list, device_list + num_devices) : in->devices;
  linked.form = program_form::linked;
  cell* const cell = make(handle_kind::cl_program, std::move(info));
  if (!cell) return fail(errcode_ret, CL_OUT_OF_HOST_MEMORY);
  body.handle = cell->id;
  const auto made = std::make_shared<bool>(false);
  const auto ask = [body, kept, made](build_reply& built) { return ask_for_link(body, *made, built); };
  const auto program = reinterpret_cast<cl_program>(cell);
  const cl_int code = begin(program, linked, ask, pfn_notify, user_data);
  if (errcode_ret) *errcode_ret = code;
  // A program that the linker refused may still say why.
  if (code == CL_SUCCESS || *made) return program;
  discard(*cell);
  return nullptr;
}

}  // namespace outboard::frontend::opencl::ends
