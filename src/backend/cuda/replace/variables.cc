// Variables of modules and libraries: where the driver has placed them, and what is in them. One whose code
// nobody has worked with has no place yet, and holds what its image says.
#include <algorithm>
#include <set>

#include "backend/cuda/code/code.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/replace/parts.hh"

namespace outboard::backend {
namespace {

/// A module or library, and the context in which it is loaded.
using loaded_in = std::pair<std::uint64_t, std::uint64_t>;

std::set<loaded_in> code_in_use(call& c) {
  std::set<loaded_in> all;
  for (const first_use& use : c.session.uses().all(c.objects())) {
    if (const loaded_code* const code = code_of(*c.objects().at(use.id))) all.emplace(code->id, use.context);
  }
  return all;
}

CUresult find(call& c, variable_part& out) {
  if (const CUresult code = c.session.enter_context(c.own, out.context); code != CUDA_SUCCESS) return code;
  const server_object* const object = c.objects().at(out.code);
  if (!object) return CUDA_ERROR_INVALID_HANDLE;
  CUdeviceptr address = 0;
  std::size_t size = 0;
  const CUresult code = address_of_variable(c, out.code, out.name, address, size);
  out.address = address, out.content.resize(size);
  return code;
}

status read(call& c, variable_part& part) {
  CUresult code = find(c, part);
  if (code == CUDA_SUCCESS)
    code = call_driver(c.driver().cuMemcpyDtoH_v2, part.content.data(), part.address, part.content.size());
  if (code != CUDA_SUCCESS) return failure(failed_for("the variable " + part.name + " cannot be read", code));
  // The next worker asks in this order, and so does the one behind it.
  c.session.uses().of_variable(c.objects(), {c.core.executed(), part.context, part.code, part.name});
  return {};
}

}  // namespace

result<std::vector<variable_part>> variables_of(call& c) {
  std::vector<variable_part> all;
  for (const auto& [id, context] : code_in_use(c)) {
    const server_object* const object = c.objects().at(id);
    const loaded_code* const code = object ? code_of(*object) : nullptr;
    if (!code) return failure("it has a module of unknown contents");
    if (!code->managed.empty()) return failure("it has managed variables");
    for (const std::string& name : code->variables) {
      variable_part part{id, context, name, 0, {}};
      OUTBOARD_TRY(read(c, part));
      all.push_back(std::move(part));
    }
  }
  return all;
}

/// Pointers to a variable may be anywhere: it has to lie where it did.
status fill_variables(call& c, const std::vector<variable_part>& all) {
  for (const variable_part& then : all) {
    variable_part now{then.code, then.context, then.name, 0, {}};
    CUresult code = find(c, now);
    if (code == CUDA_SUCCESS && (now.address != then.address || now.content.size() != then.content.size()))
      return failure("the driver places the variable " + then.name + " elsewhere here (" +
                     std::to_string(now.address) + ", not " + std::to_string(then.address) + ")");
    if (code == CUDA_SUCCESS)
      code = call_driver(c.driver().cuMemcpyHtoD_v2, then.address, then.content.data(), then.content.size());
    if (code != CUDA_SUCCESS)
      return failure(failed_for("the variable " + then.name + " cannot be written", code));
  }
  return {};
}

}  // namespace outboard::backend
