// The compiler and the linker at work: the other lanes go on meanwhile. A build that fails is told about as
// well as one that does not.
#include <algorithm>
#include <string>
#include <string_view>

#include "backend/opencl/ends.hh"
#include "backend/opencl/program_facts.hh"
#include "backend/opencl/questions.hh"
#include "backend/session/session_core.hh"
#include "base/log.hh"

namespace outboard::backend::opencl {
namespace {

using namespace marshal::opencl;
using api::opencl::function_table;

/// Programs that stay alive while they are worked on without the turn.
class kept_programs {
 public:
  explicit kept_programs(const function_table& table) : table_(table) {}
  kept_programs(const kept_programs&) = delete;
  ~kept_programs() {
    for (const cl_program each : all_) table_.clReleaseProgram(each);
  }
  cl_int add(call& c, std::uint64_t id) {
    cl_program native = nullptr;
    cl_int code = resolve(c, id, native);
    if (code == CL_SUCCESS) code = table_.clRetainProgram(native);
    if (code == CL_SUCCESS) all_.push_back(native);
    return code;
  }
  cl_int add(call& c, const ids& list) {
    cl_int code = CL_SUCCESS;
    for (std::size_t i = 0; i < list.size() && code == CL_SUCCESS; ++i) code = add(c, list[i]);
    return code;
  }
  const std::vector<cl_program>& all() const { return all_; }

 private:
  const function_table& table_;
  std::vector<cl_program> all_;
};

named_devices name_all(call& c, const std::vector<cl_device_id>& devices) {
  named_devices named;
  for (const cl_device_id device : devices)
    named.emplace_back(device, own(c).objects().name_of(api::handle_kind::cl_device, device));
  return named;
}

cl_uint count_of(const auto& list) { return static_cast<cl_uint>(list.size()); }
const auto* first_of(const auto& list) { return list.empty() ? nullptr : list.data(); }

/// With information about arguments the client need not ask when they are set. Not all compilers can give it:
/// on a 580 driver of NVIDIA's no program with a kernel without arguments is built with that option.
template <class Work>
cl_int with_argument_info(const std::string& options, Work&& work) {
  constexpr std::string_view wish = "-cl-kernel-arg-info";
  if (options.find(wish) != std::string::npos) return work(options.c_str());
  const std::string more = options + (options.empty() ? "" : " ") + std::string(wish);
  return work(more.c_str()) == CL_SUCCESS ? CL_SUCCESS : work(options.c_str());
}

/// What both have before the compiler begins.
struct compilation {
  kept_programs programs;  ///< the first one is compiled, the others are its headers
  std::vector<cl_device_id> devices;
  named_devices names;
  std::optional<files_of_build> wanted;
  std::optional<program_doors::stay> alone;
  std::optional<build_folder::stay> files;
  cl_int code;

  compilation(call& c, const build_body& body, const ids& headers)
      : programs(own(c).table()), wanted(own(c).take_files(c.own.id)) {
    code = programs.add(c, body.program);
    if (code == CL_SUCCESS) code = programs.add(c, headers);
    if (code == CL_SUCCESS) code = resolve_all(c, body.devices, devices);
    if (code == CL_SUCCESS) names = name_all(c, devices_of(own(c).table(), program()));
  }
  cl_program program() const { return programs.all().front(); }

  /// Other lanes go on. CL_SUCCESS: the compiler may begin.
  cl_int start(call& c) {
    c.give_up_turn();
    alone.emplace(own(c).doors(), program());
    if (!wanted) return CL_SUCCESS;
    auto entered = own(c).files().enter(*wanted);
    if (!entered.ok()) {
      log::warn("no room for the files of a build: ", entered.error().message);
      return CL_OUT_OF_RESOURCES;
    }
    files.emplace(std::move(*entered));
    return CL_SUCCESS;
  }

  outcome told(call& c, const build_body& body, bool executable, build_reply reply) const {
    describe(own(c).table(), program(), names, executable && reply.code == CL_SUCCESS, reply);
    for (device_build& each : reply.devices) {
      each.options = body.options;
      if (files) each.log = files->without_folder(std::move(each.log));
    }
    marshal::put_body(c.reply, reply);
    return outcome::answer(CL_SUCCESS);
  }
};

}  // namespace

namespace ends {

outcome build_files(call& c) {
  const auto body = marshal::take_body<build_files_body>(c.body);
  if (!c.body.ok()) return outcome::malformed();
  const auto bytes = own(c).take_bytes(body.contents, c.body.rest());
  if (!bytes || !own(c).expect_files(c.own.id, body, *bytes)) return outcome::malformed();
  return outcome::answer(CL_SUCCESS);
}

outcome clBuildProgram(call& c) {
  build_body body;
  if (!take_all(c, body)) return outcome::malformed();
  compilation work(c, body, {});
  if (work.code != CL_SUCCESS) return outcome::answer(work.code);
  if (const cl_int code = work.start(c); code != CL_SUCCESS) return outcome::answer(code);
  build_reply reply;
  reply.code = with_argument_info(body.options, [&](const char* options) {
    return own(c).table().clBuildProgram(work.program(), count_of(work.devices), first_of(work.devices),
                                         options, nullptr, nullptr);
  });
  return work.told(c, body, true, std::move(reply));
}

outcome clCompileProgram(call& c) {
  compile_body body;
  if (!take_all(c, body) || body.headers.size() != body.names.size()) return outcome::malformed();
  auto* const compile = own(c).table().clCompileProgram;
  if (!compile) return outcome::answer(CL_INVALID_OPERATION);
  compilation work(c, body.build, body.headers);
  if (work.code != CL_SUCCESS) return outcome::answer(work.code);
  const std::vector<cl_program> headers(work.programs.all().begin() + 1, work.programs.all().end());
  std::vector<const char*> names;
  for (const std::string& name : body.names) names.push_back(name.c_str());
  if (const cl_int code = work.start(c); code != CL_SUCCESS) return outcome::answer(code);
  build_reply reply;
  reply.code = with_argument_info(body.build.options, [&](const char* options) {
    return compile(work.program(), count_of(work.devices), first_of(work.devices), options, count_of(headers),
                   first_of(headers), names.empty() ? nullptr : names.data(), nullptr, nullptr);
  });
  return work.told(c, body.build, false, std::move(reply));
}

outcome clLinkProgram(call& c) {
  link_body body;
  if (!take_all(c, body) || !names<cl_program>(body.handle)) return outcome::malformed();
  const function_table& table = own(c).table();
  if (!table.clLinkProgram) return outcome::answer(CL_INVALID_OPERATION);
  kept_programs inputs(table);
  cl_context context = nullptr;
  std::vector<cl_device_id> devices;
  cl_int code = resolve(c, body.context, context);
  if (code == CL_SUCCESS) code = inputs.add(c, body.programs);
  if (code == CL_SUCCESS) code = resolve_all(c, body.devices, devices);
  if (code == CL_SUCCESS) code = table.clRetainContext(context);
  if (code != CL_SUCCESS) return outcome::answer(code);
  const auto known = name_all(c, list_of<cl_device_id>([&](std::size_t size, void* to, std::size_t* wanted) {
                                return table.clGetContextInfo(context, CL_CONTEXT_DEVICES, size, to, wanted);
                              }));
  c.give_up_turn();
  link_reply reply;
  const cl_program made = table.clLinkProgram(
      context, count_of(devices), first_of(devices), body.has_options ? body.options.c_str() : nullptr,
      count_of(inputs.all()), first_of(inputs.all()), nullptr, nullptr, &reply.built.code);
  table.clReleaseContext(context);
  reply.made = made != nullptr;
  if (made) {
    describe(table, made, known, reply.built.code == CL_SUCCESS, reply.built);
    c.core.late().add({body.handle, made, {}, nullptr});
  }
  marshal::put_body(c.reply, reply);
  return outcome::answer(CL_SUCCESS);
}

}  // namespace ends
}  // namespace outboard::backend::opencl
