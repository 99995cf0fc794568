#include "backend/session/handle_tables.hh"

#include <algorithm>

namespace outboard::backend {
namespace {

/// Threads may send their creations in another order than they took ids; no program has this many threads
/// doing so.
constexpr std::size_t max_gap = 1 << 16;

bool fits(api::handle_kind wanted, std::uint8_t kind) {
  return kind == static_cast<std::uint8_t>(wanted) ||
         (wanted == api::handle_kind::function &&
          kind == static_cast<std::uint8_t>(api::handle_kind::kernel));
}

/// Two changes of the same thing: all but the value at the end of the payload is equal.
bool same_subject(const record& a, const record& b, std::size_t value) {
  return a.payload.size() >= value &&
         std::equal(a.payload.begin(), a.payload.end() - value, b.payload.begin());
}

}  // namespace

server_object* handle_tables::slot_for(std::uint64_t id, bool minted) {
  const wire::handle h{id};
  if (!h.well_formed() || h.kind() >= kinds || h.minted() != minted) return nullptr;
  table& t = (minted ? minted_ : chosen_)[h.kind()];
  return h.index() < t.size() ? &t[h.index()] : nullptr;
}

bool handle_tables::place(std::uint64_t id, server_object made) {
  const wire::handle h{id};
  if (!h.well_formed() || h.kind() >= kinds || h.minted()) return false;
  table& t = chosen_[h.kind()];
  if (h.index() >= t.size() + max_gap) return false;
  if (h.index() >= t.size()) t.resize(h.index() + 1);
  server_object& slot = t[h.index()];
  // A tombstone's id may come again only with another generation; a living one never. But a primary context
  // has one handle for all its lives.
  const bool comes_again = h.kind() == static_cast<std::uint8_t>(api::handle_kind::context);
  if (slot.state == server_object::life::alive || (slot.generation == h.generation() && !comes_again))
    return false;
  made.generation = h.generation();
  slot = std::move(made);
  return true;
}

bool handle_tables::create(std::uint64_t id, void* native, record made_by, std::shared_ptr<void> extra) {
  server_object made;
  made.state = server_object::life::alive;
  made.native = native;
  made.extra = std::move(extra);
  made.records.push_back(std::move(made_by));
  return place(id, std::move(made));
}

bool handle_tables::fail(std::uint64_t id, std::int32_t code) {
  server_object made;
  made.state = server_object::life::tombstone;
  made.code = code;
  return place(id, std::move(made));
}

server_object* handle_tables::find(api::handle_kind kind, std::uint64_t id) {
  const wire::handle h{id};
  if (!fits(kind, h.kind())) return nullptr;
  server_object* slot = slot_for(id, h.minted());
  return slot && slot->state == server_object::life::alive && slot->generation == h.generation() ? slot
                                                                                                 : nullptr;
}

const server_object* handle_tables::at(std::uint64_t id) const {
  return const_cast<handle_tables*>(this)->find(static_cast<api::handle_kind>(wire::handle{id}.kind()), id);
}

std::int32_t handle_tables::native_of(api::handle_kind kind, std::uint64_t value, void*& native) {
  const wire::handle h{value};
  if (!fits(kind, h.kind())) return dead_(kind);
  server_object* slot = slot_for(value, h.minted());
  if (!slot || slot->generation != h.generation()) return dead_(kind);
  if (slot->state == server_object::life::tombstone) return slot->code;
  if (slot->state == server_object::life::free) return dead_(kind);
  native = slot->native;
  return 0;
}

void handle_tables::erase(std::uint64_t id) {
  const wire::handle h{id};
  server_object* slot = slot_for(id, h.minted());
  if (!slot || slot->generation != h.generation()) return;
  const std::uint32_t generation = slot->generation;
  void* const native = slot->native;
  if (h.minted()) {
    minted_by_native_[h.kind()].erase(native);
    minted_free_[h.kind()].push_back(h.index());
  }
  *slot = server_object{};
  slot->generation = generation;
  changes_.erase(native);
  if (h.kind() != static_cast<std::uint8_t>(api::handle_kind::graph) || !native) return;
  // The driver may use the address again: no name may lead there.
  auto& names = minted_by_native_[h.kind()];
  if (const auto other = names.find(native); other != names.end()) erase(other->second);
  erase_children(native);
}

void handle_tables::bury(api::handle_kind kind, std::uint64_t context, std::int32_t code) {
  for (server_object& slot : chosen_[static_cast<std::size_t>(kind)]) {
    const bool dies = slot.state == server_object::life::alive && !slot.records.empty() &&
                      slot.records.front().context == context;
    if (!dies) continue;
    const std::uint32_t generation = slot.generation;
    slot = server_object{};
    slot.state = server_object::life::tombstone;
    slot.generation = generation;
    slot.code = code;
  }
}

void handle_tables::erase_children(void* graph) {
  const auto found = children_.find(graph);
  if (found == children_.end()) return;
  const std::vector<std::uint64_t> ids = std::move(found->second);
  children_.erase(found);
  for (const std::uint64_t id : ids) erase(id);  // those erased before are of another generation now
}

std::uint64_t handle_tables::name_of(api::handle_kind kind, void* native, void* parent) {
  const table& t = chosen_[static_cast<std::size_t>(kind)];
  // Nodes are never chosen, and there may be many.
  for (std::uint32_t i = 0; kind != api::handle_kind::graph_node && i < t.size(); ++i) {
    if (t[i].state == server_object::life::alive && t[i].native == native)
      return wire::handle::make(static_cast<std::uint8_t>(kind), i, t[i].generation).value;
  }
  const bool fresh = !minted_by_native_[static_cast<std::size_t>(kind)].contains(native);
  const std::uint64_t id = minted_name(kind, native);
  if (fresh && parent) {
    children_[parent].push_back(id);
    minted_[static_cast<std::size_t>(kind)][wire::handle{id}.index()].parent = parent;
  }
  return id;
}

bool handle_tables::mint_as(api::handle_kind kind, void* native, std::uint64_t id, void* parent) {
  const wire::handle h{id};
  const auto k = static_cast<std::size_t>(kind);
  table& t = minted_[k];
  if (!h.well_formed() || !h.minted() || h.kind() != k || h.index() >= t.size() + max_gap) return false;
  if (const auto known = minted_by_native_[k].find(native); known != minted_by_native_[k].end())
    return known->second == id;
  while (t.size() <= h.index()) {
    minted_free_[k].push_back(static_cast<std::uint32_t>(t.size()));
    t.emplace_back();
  }
  server_object& slot = t[h.index()];
  if (slot.state != server_object::life::free) return false;
  std::erase(minted_free_[k], h.index());
  slot.state = server_object::life::alive;
  slot.generation = h.generation();
  slot.native = native;
  slot.parent = parent;
  minted_by_native_[k][native] = id;
  if (parent) children_[parent].push_back(id);
  return true;
}

void* handle_tables::parent_of(std::uint64_t id) const {
  const server_object* found = at(id);
  return found ? found->parent : nullptr;
}

std::uint64_t handle_tables::minted_name_of(api::handle_kind kind, void* native) const {
  const auto& names = minted_by_native_[static_cast<std::size_t>(kind)];
  const auto known = names.find(native);
  return known != names.end() ? known->second : 0;
}

std::uint64_t handle_tables::minted_name(api::handle_kind kind, void* native) {
  if (const std::uint64_t known = minted_name_of(kind, native)) return known;
  const auto k = static_cast<std::size_t>(kind);
  table& t = minted_[k];
  std::uint32_t index = static_cast<std::uint32_t>(t.size());
  if (!minted_free_[k].empty()) {
    index = minted_free_[k].back();
    minted_free_[k].pop_back();
  } else {
    t.emplace_back();
  }
  server_object& slot = t[index];
  const std::uint32_t generation = slot.generation % wire::handle::max_generation + 1;
  slot.state = server_object::life::alive;
  slot.generation = generation;
  slot.native = native;
  const std::uint64_t id = wire::handle::make(static_cast<std::uint8_t>(kind), index, generation, true).value;
  minted_by_native_[k][native] = id;
  return id;
}

void handle_tables::each_of(std::size_t kind, server_object::life state, const visitor& visit) const {
  const table& t = chosen_[kind];
  for (std::uint32_t i = 0; i < t.size(); ++i) {
    if (t[i].state == state)
      visit(wire::handle::make(static_cast<std::uint8_t>(kind), i, t[i].generation).value, t[i]);
  }
}

std::vector<std::uint64_t> handle_tables::ids(api::handle_kind kind) const {
  std::vector<std::uint64_t> out;
  each_of(static_cast<std::size_t>(kind), server_object::life::alive,
          [&](std::uint64_t id, const server_object&) { out.push_back(id); });
  return out;
}

void handle_tables::each(const visitor& visit) const {
  for (std::size_t kind = 0; kind < kinds; ++kind) each_of(kind, server_object::life::alive, visit);
}

void handle_tables::each_tombstone(const visitor& visit) const {
  for (std::size_t kind = 0; kind < kinds; ++kind) each_of(kind, server_object::life::tombstone, visit);
}

void handle_tables::amend(std::uint64_t id, record changed_by, std::size_t value) {
  server_object* changed = find(static_cast<api::handle_kind>(wire::handle{id}.kind()), id);
  if (!changed) return;
  // The last value counts: a program that sets the same attribute a million times must not fill the worker.
  std::erase_if(changed->records, [&](const record& r) {
    return r.opcode == changed_by.opcode && r.payload.size() == changed_by.payload.size() &&
           &r != &changed->records.front() && same_subject(r, changed_by, value);
  });
  changed->records.push_back(std::move(changed_by));
}

void handle_tables::forget_change(std::uint64_t id, std::uint32_t opcode, std::uint64_t subject) {
  server_object* changed = find(static_cast<api::handle_kind>(wire::handle{id}.kind()), id);
  if (!changed) return;
  std::erase_if(changed->records, [&](const record& r) {
    return r.opcode == opcode && wire::reader(r.payload).get<std::uint64_t>() == subject;
  });
}

void late_objects::add(late_object made) {
  const std::lock_guard lock(mutex_);
  made_.push_back(std::move(made));
  any_.store(true, std::memory_order_release);  // partner: enter()
}

bool late_objects::enter_all(handle_tables& tables) {
  const std::lock_guard lock(mutex_);
  any_.store(false, std::memory_order_relaxed);
  bool entered = true;
  for (late_object& made : std::exchange(made_, {}))
    entered &= tables.create(made.id, made.native, std::move(made.made_by), std::move(made.extra));
  return entered;
}

bool handle_tables::minted_besides(api::handle_kind kind) const {
  for (std::size_t i = 0; i < kinds; ++i) {
    if (i != static_cast<std::size_t>(kind) && !minted_by_native_[i].empty()) return true;
  }
  return false;
}

}  // namespace outboard::backend
