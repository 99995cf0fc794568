#include "backend/cuda/code/code.hh"

#include <algorithm>

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
