// The first worker's half of preparation.hh.
#include "backend/cuda/replace/preparation.hh"

#include <algorithm>
#include <cstring>

#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

using api::handle_kind;

template <class Body>
Body body_of(const record& r) {
  wire::reader from(r.payload);
  return marshal::take_body<Body>(from);
}

/// Its name in the code that it is of; empty: it is no kernel or function.
std::string kernel_name(const object_tables& objects, const server_object& kernel) {
  const auto made = body_of<marshal::derive_body>(kernel.records.front());
  if (!made.name.empty()) return made.name;
  // A function of a kernel has that one's name.
  const server_object* const of = objects.at(made.parent);
  return of ? body_of<marshal::derive_body>(of->records.front()).name : "";
}

bool is_load(const record& r) {
  const api::object_change does = api::about(static_cast<api::opcode>(r.opcode)).object;
  return does == api::object_change::loads_module || does == api::object_change::loads_library;
}

}  // namespace

code_preparation::code_preparation(call& c) {
  for (const std::uint64_t id : c.objects().ids(handle_kind::context)) {
    const record& made = c.objects().at(id)->records.front();
    // One that the program has created is not there before its session.
    if (api::about(static_cast<api::opcode>(made.opcode)).creates != api::no_parameter) continue;
    part_.contexts.push_back({id, body_of<marshal::context_body>(made).device});
  }
  add_loads(c);
  add_uses(c);
  const auto waits = [&](std::uint64_t context) {
    return std::ranges::find(part_.contexts, context, &waiting_context::id) != part_.contexts.end();
  };
  const bool all_wait =
      std::ranges::all_of(part_.loads,
                          [&](const code_to_load& l) { return l.library || waits(l.context); }) &&
      std::ranges::all_of(part_.uses, [&](const code_to_use& u) { return waits(u.context); });
  // Code of another context would be placed behind all of this: the session then loads everything itself.
  if (!all_wait) part_ = {}, code_.clear();
}

void code_preparation::add_loads(call& c) {
  std::vector<std::pair<code_to_load, std::shared_ptr<loaded_code>>> all;
  for (const handle_kind kind : {handle_kind::module, handle_kind::library}) {
    for (const std::uint64_t id : c.objects().ids(kind)) {
      const server_object& object = *c.objects().at(id);
      const record& made = object.records.front();
      if (!is_load(made) || !object.extra) continue;  // a library's module comes with it
      const bool library = kind == handle_kind::library;
      code_to_load one{made.ticket, made.context, library, body_of<marshal::load_body>(made), {}};
      all.emplace_back(std::move(one), std::static_pointer_cast<loaded_code>(object.extra));
    }
  }
  std::ranges::sort(all, {}, [](const auto& one) { return one.first.ticket; });
  for (auto& [one, code] : all) {
    part_.loads.push_back(std::move(one));
    code_.push_back(std::move(code));
  }
}

void code_preparation::add_uses(call& c) {
  const object_tables& objects = c.objects();
  const auto add = [&](std::uint64_t ticket, std::uint64_t context, const server_object& object,
                       std::string variable) {
    const loaded_code* const code = code_of(object);
    if (!code) return;
    const bool is_variable = !variable.empty();
    std::string name = is_variable ? std::move(variable) : kernel_name(objects, object);
    part_.uses.push_back({ticket, context, code->id, is_variable, std::move(name)});
  };
  for (const first_use& use : c.session.uses().all(objects))
    add(use.ticket, use.context, *objects.at(use.id), use.variable);
  for (const std::uint64_t id : c.objects().ids(handle_kind::function)) {
    const server_object& object = *objects.at(id);
    add(object.records.front().ticket, object.records.front().context, object, {});
  }
  std::ranges::stable_sort(part_.uses, {}, &code_to_use::ticket);
}

std::vector<std::byte> code_preparation::encode() {
  for (std::size_t i = 0; i < code_.size(); ++i) {
    const std::span<const std::byte> image = code_[i]->image.encoded();
    std::vector<std::uint8_t>& copy = part_.loads[i].image;
    copy.resize(image.size());
    if (!image.empty()) std::memcpy(copy.data(), image.data(), image.size());
  }
  std::vector<std::byte> bytes;
  wire::writer w(bytes);
  marshal::put_body(w, part_);
  return bytes;
}

std::set<std::uint64_t> code_preparation::ids() const {
  std::set<std::uint64_t> all;
  for (const code_to_load& one : part_.loads) all.insert(one.body.handle);
  return all;
}

}  // namespace outboard::backend
