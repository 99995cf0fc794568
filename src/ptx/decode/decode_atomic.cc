// atom, red, and accesses of more than 16 bytes or of 128-bit registers.
#include "ptx/decode/decode.hh"
#include "ptx/run/plain_atomic.hh"

namespace outboard::ptx {

void decoder::do_atom() {
  if (take("async")) return do_async_store(true);
  const bool returns = now_->name == "atom";
  for (const auto m : {"relaxed", "acquire", "release", "acq_rel", "noftz"}) take(m);
  const space s = take_space();
  static constexpr std::pair<std::string_view, atom> kinds[] = {
      {"add", atom::add},  {"min", atom::min}, {"max", atom::max},  {"inc", atom::inc},   {"dec", atom::dec},
      {"and", atom::and_}, {"or", atom::or_},  {"xor", atom::xor_}, {"exch", atom::exch}, {"cas", atom::cas}};
  atom a = atom::count;
  for (const auto& [name, kind] : kinds) {
    if (a == atom::count && take(name)) a = kind;
  }
  take_cache_hints();
  const std::uint32_t lanes = take("v2") ? 2 : take("v4") ? 4 : take("v8") ? 8 : 1;
  const type t = take_type(true);
  if (a == atom::count) return fail("unsupported operation");
  const std::size_t first = returns ? 1 : 0;
  count(first + (a == atom::cas ? 3 : 2), first + (a == atom::cas ? 4 : 3));
  if (!ok_) return;
  if (s == space::local || s == space::param || s == space::constant) return fail("unsupported state space");
  const located p = locate(at(first), s);
  if (t == type::b128) {
    if (a != atom::exch && a != atom::cas) return fail("unsupported operation");
    return do_atom_wide(p, first);
  }
  const bool halves = t == type::f16 || t == type::bf16 || t == type::f16x2 || t == type::bf16x2;
  if (lanes > 1 || halves) return do_atom_plain(p, a, t, lanes, returns, first);
  const auto b = source(at(first + 1), t), c = a == atom::cas ? source(at(first + 2), t) : 0;
  const auto d = returns ? target(at(0), t) : temporary(register_bytes(t));
  // Signed types share the bitwise operations of the unsigned ones.
  const bool bitwise = a >= atom::inc;
  const element e = bitwise ? bits_element(t) : element_of(t);
  if (e == element::count || (bitwise && is_float(t))) return fail("unsupported type");
  inst& i = emit(steps().atomic[static_cast<int>(p.window)][static_cast<int>(a)][static_cast<int>(e)],
                 "type for this operation");
  i.r[0] = d, i.r[1] = b, i.r[2] = c, i.r[4] = p.address, i.imm = p.offset, i.aux = returns;
}

void decoder::do_atom_plain(const located& p, atom a, type t, std::uint32_t lanes, bool returns,
                            std::size_t first) {
  const element e = element_of(t);
  if (e == element::count || !atomic_known(a, e) || (lanes > 1 && size_of(t) * lanes > 16)) {
    return fail("unsupported type for this operation");
  }
  std::vector<const operand*> values, before;
  memory_operands(at(first + 1), lanes, values);
  if (returns) memory_operands(at(0), lanes, before);
  if (!ok_) return;
  std::uint32_t value[8] = {}, old[8] = {};
  for (std::uint32_t n = 0; n < lanes; ++n) value[n] = source(*values[n], t);
  for (std::uint32_t n = 0; n < lanes; ++n)
    old[n] = returns ? target(*before[n], t) : temporary(register_bytes(t));
  auto& s = detail<atomic_step>(atomic_run);
  s.what = a, s.kind = e, s.to = p, s.elements = lanes;
  std::copy(value, value + 8, s.value);
  std::copy(old, old + 8, s.before);
}

void decoder::do_atom_wide(const located& p, std::size_t first) {
  const bool compares = has("cas");
  const auto b = source(at(first + 1), type::b128), c = compares ? source(at(first + 2), type::b128) : 0;
  const auto d = first == 1 ? target(at(0), type::b128) : temporary(16);
  if (!ok_) return;
  auto& s = detail<wide_atomic_step>(wide_atomic_run);
  s.compares = compares, s.to = p, s.d = d, s.b = b, s.c = c;
}

void decoder::wide_access(bool store, type t, std::uint32_t lanes, const std::vector<const operand*>& values,
                          const located& p) {
  std::uint32_t r[8] = {};
  for (std::uint32_t n = 0; n < lanes; ++n) r[n] = store ? source(*values[n], t) : target(*values[n], t);
  if (!ok_) return;
  auto& s = detail<wide_access_step>(wide_access_run);
  s.at = p, s.elements = lanes, s.bytes = size_of(t), s.store = store;
  std::copy(r, r + 8, s.value);
}

}  // namespace outboard::ptx
