// Variables of modules and libraries: where the driver has placed them, and what is in them.
#include <algorithm>

#include "backend/cuda/code/code.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/replace/parts.hh"
#include "marshal/cuda/kernel_table.hh"

namespace outboard::backend {
namespace {

result<marshal::kernel_table> table_of(const server_object& object) {
  const loaded_code* const code = code_of(object);
  wire::reader from(object.records.front().payload);
  const auto body = marshal::take_body<marshal::load_body>(from);
  if (!code || !from.ok()) return failure("it has a module of unknown contents");
  const marshal::image_target target{body.capability_major, body.capability_minor, body.wants_ptx, false};
  return marshal::parse_kernels(code->image.view(), target);
}

/// A module that a library was asked for: what is in it is the library's.
bool is_of_a_library(const server_object& object, std::uint64_t id) {
  const loaded_code* const code = code_of(object);
  return code && std::ranges::find(code->derived, id) != code->derived.end();
}

struct place {
  CUdeviceptr address = 0;
  std::size_t size = 0;
};

/// In the context that is current.
CUresult find(call& c, std::uint64_t id, const std::string& name, place& out) {
  const server_object& object = *c.objects().at(id);
  const bool is_library = wire::handle{id}.kind() == static_cast<std::uint8_t>(api::handle_kind::library);
  return is_library ? call_driver(c.driver().cuLibraryGetGlobal, &out.address, &out.size,
                                  static_cast<CUlibrary>(object.native), name.c_str())
                    : call_driver(c.driver().cuModuleGetGlobal_v2, &out.address, &out.size,
                                  static_cast<CUmodule>(object.native), name.c_str());
}

status add_variables(call& c, std::uint64_t id, std::uint64_t context, bool with_content,
                     const marshal::kernel_table& table, std::vector<variable_part>& all) {
  if (const CUresult code = c.session.enter_context(c.own, context); code != CUDA_SUCCESS)
    return failure(failed_for("the context of a variable cannot be entered", code));
  for (const marshal::variable_info& v : table.variables) {
    if (v.space == marshal::variable_space::managed) return failure("it has managed variables");
    place where;
    const CUresult found = find(c, id, v.name, where);
    if (found != CUDA_SUCCESS) return failure(failed_for("the variable " + v.name, found));
    variable_part part{id, context, v.name, where.address, {}};
    if (with_content) {
      part.content.resize(where.size);
      const CUresult read =
          call_driver(c.driver().cuMemcpyDtoH_v2, part.content.data(), where.address, where.size);
      if (read != CUDA_SUCCESS)
        return failure(failed_for("the variable " + v.name + " cannot be read", read));
    }
    all.push_back(std::move(part));
  }
  return {};
}

}  // namespace

result<std::vector<variable_part>> variables_of(call& c, bool with_content) {
  std::vector<variable_part> all;
  for (const api::handle_kind kind : {api::handle_kind::module, api::handle_kind::library}) {
    for (const std::uint64_t id : c.objects().ids(kind)) {
      const server_object& object = *c.objects().at(id);
      if (is_of_a_library(object, id)) continue;
      auto table = table_of(object);
      if (!table.ok()) return std::move(table).error();
      if (table->variables.empty()) continue;
      if (kind == api::handle_kind::module) {
        OUTBOARD_TRY(add_variables(c, id, object.records.front().context, with_content, *table, all));
        continue;
      }
      for (const std::uint64_t context : c.objects().ids(api::handle_kind::context))
        OUTBOARD_TRY(add_variables(c, id, context, with_content, *table, all));
    }
  }
  return all;
}

}  // namespace outboard::backend
