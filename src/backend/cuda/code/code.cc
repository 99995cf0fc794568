#include "backend/cuda/code/code.hh"

#include <algorithm>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

bool is_code(std::uint8_t kind) {
  switch (static_cast<api::handle_kind>(kind)) {
    case api::handle_kind::module:
    case api::handle_kind::library:
    case api::handle_kind::kernel:
    case api::handle_kind::function:
      return true;
    default:
      return false;
  }
}

}  // namespace

loaded_code* code_of(const server_object& object) { return static_cast<loaded_code*>(object.extra.get()); }

outcome derived(call& c, api::handle_kind parent_kind, const marshal::derive_body& body, CUresult code,
                void* native) {
  object_tables& objects = c.objects();
  if (code != CUDA_SUCCESS) {
    return objects.fail(body.handle, code) ? outcome::answer(code) : outcome::malformed();
  }
  const server_object* parent = objects.find(parent_kind, body.parent);
  const std::shared_ptr<void> extra = parent ? parent->extra : nullptr;
  if (!objects.create(body.handle, native, c.as_record(), extra)) return outcome::malformed();
  if (extra) static_cast<loaded_code*>(extra.get())->derived.push_back(body.handle);
  return outcome::answer(CUDA_SUCCESS);
}

CUresult address_of_variable(call& c, std::uint64_t code, const std::string& name, CUdeviceptr& address,
                             std::size_t& size) {
  if (wire::handle{code}.kind() == static_cast<std::uint8_t>(api::handle_kind::library)) {
    CUlibrary library = nullptr;
    const CUresult there = c.objects().resolve(code, library);
    return there == CUDA_SUCCESS
               ? call_driver(c.driver().cuLibraryGetGlobal, &address, &size, library, name.c_str())
               : there;
  }
  CUmodule module = nullptr;
  const CUresult there = c.objects().resolve(code, module);
  return there == CUDA_SUCCESS
             ? call_driver(c.driver().cuModuleGetGlobal_v2, &address, &size, module, name.c_str())
             : there;
}

void note_use(call& c, const marshal::lookup_body& asked) {
  const server_object* const object = c.objects().at(asked.parent);
  const std::uint64_t context =
      c.header.context || !object ? c.header.context : object->records.front().context;
  c.session.uses().of_variable(c.objects(), {c.header.ticket, context, asked.parent, asked.name});
}

std::vector<marshal::address_range> managed_variables(call& c, std::uint64_t id) {
  std::vector<marshal::address_range> out;
  if (!c.session.mirrors().has_variables()) return out;
  const server_object* object = c.objects().at(id);
  if (!object || !code_of(*object)) return out;
  CUmodule module = nullptr;
  CUlibrary library = nullptr;
  const bool is_library = wire::handle{id}.kind() == static_cast<std::uint8_t>(api::handle_kind::library);
  const CUresult code = is_library ? c.objects().resolve(id, library) : c.objects().resolve(id, module);
  if (code != CUDA_SUCCESS) return out;
  for (const std::string& name : code_of(*object)->managed) {
    CUdeviceptr begin = 0;
    std::size_t size = 0;
    const CUresult found =
        is_library ? call_driver(c.driver().cuLibraryGetManaged, &begin, &size, library, name.c_str())
                   : call_driver(c.driver().cuModuleGetGlobal_v2, &begin, &size, module, name.c_str());
    if (found == CUDA_SUCCESS) out.push_back({begin, begin + size});
  }
  return out;
}

std::vector<marshal::address_range> managed_variables_of_context(call& c, std::uint64_t context) {
  std::vector<marshal::address_range> out;
  if (!c.session.mirrors().has_variables()) return out;
  for (const std::uint64_t id : c.objects().ids(api::handle_kind::module)) {
    const server_object* object = c.objects().at(id);
    if (!object || object->records.empty() || object->records.front().context != context) continue;
    const auto more = managed_variables(c, id);
    out.insert(out.end(), more.begin(), more.end());
  }
  return out;
}

void forget_code(object_tables& objects, std::uint64_t id) {
  const server_object* object = objects.at(id);
  if (!object || !is_code(wire::handle{id}.kind())) return;
  const std::shared_ptr<void> keep = object->extra;  // dies after the ids that refer to it
  auto* code = static_cast<loaded_code*>(keep.get());
  if (!code) return objects.erase(id);
  for (const std::uint64_t derived : code->derived) objects.erase(derived);
  code->derived.clear();
  objects.erase(id);
}

void forget_code_of_context(object_tables& objects, std::uint64_t context) {
  for (const api::handle_kind kind : {api::handle_kind::function, api::handle_kind::module}) {
    for (const std::uint64_t id : objects.ids(kind)) {
      const server_object* object = objects.at(id);
      if (!object || object->records.empty() || object->records.front().context != context) continue;
      // A module goes with all that came of it; of a library only what was made in this context.
      loaded_code* code = code_of(*object);
      if (kind == api::handle_kind::module && code && std::erase(code->derived, id) == 0) {
        forget_code(objects, id);
        continue;
      }
      if (code) std::erase(code->derived, id);
      objects.erase(id);
    }
  }
}

}  // namespace outboard::backend
