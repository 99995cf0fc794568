// tex, tld4, txq, suld, sust, sured, suq: objects are named by 64-bit handles in registers (unified,
// bindless).
#include <utility>

#include "ptx/decode/decode.hh"
#include "ptx/run/texture_steps.hh"

namespace outboard::ptx {

/// How many coordinates the geometry takes, and how long PTX's vector of them is (a layer first, padding
/// last).
bool decoder::take_geometry(texture_site& site) {
  struct form {
    std::string_view name;
    geometry shape;
    int dimensions;
    bool layered;
  };
  static constexpr form forms[] = {{"1d", geometry::d1, 1, false},     {"2d", geometry::d2, 2, false},
                                   {"3d", geometry::d3, 3, false},     {"a1d", geometry::a1d, 1, true},
                                   {"a2d", geometry::a2d, 2, true},    {"cube", geometry::cube, 3, false},
                                   {"acube", geometry::acube, 3, true}};
  for (const form& f : forms) {
    if (!take(f.name)) continue;
    site.shape = f.shape, site.dimensions = f.dimensions, site.layered = f.layered;
    return true;
  }
  fail("unsupported geometry");
  return false;
}

/// [handle, {coordinates}] with coordinates of type `t`.
void decoder::texture_place(const operand& o, texture_site& site, type t) {
  if (o.kind != operand_kind::address || o.base != operand_kind::reg || o.value != 0)
    return fail("expected a texture or surface handle in a register");
  if (o.parts.size() != 1) return fail("separate samplers are not supported");
  operand handle = o;
  handle.kind = operand_kind::reg;
  handle.parts.clear();
  site.handle = source(handle, type::u64);
  const operand& list = o.parts.front();
  const std::size_t used = static_cast<std::size_t>(site.dimensions) + (site.layered ? 1 : 0);
  const bool bare = list.kind != operand_kind::list;
  const std::size_t given = bare ? 1 : list.parts.size();
  // Three coordinates are written as four.
  if (given != used && !(used == 3 && given == 4)) return fail("wrong number of coordinates");
  const auto part = [&](std::size_t n) -> const operand& { return bare ? list : list.parts[n]; };
  std::size_t n = 0;
  if (site.layered) site.layer = source(part(n++), type::u32);
  for (std::size_t d = 0; d < static_cast<std::size_t>(site.dimensions); ++d)
    site.coordinates[d] = source(part(n++), t);
}

void decoder::texture_gradient(const operand& o, texture_site& site, std::size_t which) {
  const bool bare = o.kind != operand_kind::list;
  const auto used = static_cast<std::size_t>(site.dimensions);
  if ((bare ? 1 : o.parts.size()) < used) return fail("a gradient lacks components");
  for (std::size_t d = 0; d < used; ++d)
    site.gradient[3 * which + d] = source(bare ? o : o.parts[d], type::f32);
}

void decoder::emit_texture(std::unique_ptr<texture_site> site) {
  if (!ok_) return;
  inst& i = emit(texture_step);
  i.imm = reinterpret_cast<std::int64_t>(site.get());
  out_.details.push_back(std::shared_ptr<const texture_site>(std::move(site)));
}

/// The destination of a fetch: four components, in halves, pairs of halves or words; and whether they are
/// there.
void decoder::texture_target(const operand& o, texture_site& site, type t) {
  const operand* list = &o;
  if (o.kind == operand_kind::pair && o.parts.size() == 2) {
    list = &o.parts[0];
    site.wants_predicate = true;
    site.predicate = target_predicate(o.parts[1]);
  }
  site.halves = t == type::f16, site.half_pairs = t == type::f16x2;
  site.count = site.half_pairs ? 2 : 4;
  if (list->kind != operand_kind::list || list->parts.size() != site.count)
    return fail("expected a vector of " + std::to_string(site.count) + " registers");
  for (std::size_t n = 0; n < site.count; ++n) site.data[n] = target(list->parts[n], t);
}

void decoder::do_tex() {
  auto site = std::make_unique<texture_site>();
  const bool with_level = take("level"), with_gradient = take("grad");
  take("base");
  if (!take_geometry(*site)) return;
  if (!take("v4") && !take("v2")) return fail("expected a vector");
  const type d = take_type(), c = take_type();
  const bool four_bytes = d == type::f32 || d == type::s32 || d == type::u32;
  if (!four_bytes && d != type::f16 && d != type::f16x2) return fail("unsupported type");
  if (c != type::f32 && c != type::s32) return fail("unsupported type of coordinates");
  site->by_index = c == type::s32;
  if (site->by_index && (with_gradient || site->shape == geometry::cube || site->shape == geometry::acube))
    return fail("needs coordinates of type .f32");
  count(with_gradient ? 4 : with_level ? 3 : 2);
  if (!ok_) return;
  texture_target(at(0), *site, d);
  texture_place(at(1), *site, c);
  if (!ok_) return;
  site->has_level = with_level, site->has_gradient = with_gradient;
  if (with_level) site->level = source(at(2), c);
  if (with_gradient) texture_gradient(at(2), *site, 0), texture_gradient(at(3), *site, 1);
  emit_texture(std::move(site));
}

void decoder::do_tld4() {
  auto site = std::make_unique<texture_site>();
  site->action = texture_action::gather;
  const bool found = take("r") || take("g") || take("b") || take("a");
  if (!found) return fail("expected a component");
  for (const auto m : now_->modifiers) {
    if (m == "g") site->component = 1;
    if (m == "b") site->component = 2;
    if (m == "a") site->component = 3;
  }
  if (!take_geometry(*site)) return;
  if (site->dimensions != 2) return fail("unsupported geometry");
  if (!take("v4")) return fail("expected a vector");
  const type d = take_type(), c = take_type();
  if ((d != type::f32 && d != type::s32 && d != type::u32) || c != type::f32) return fail("unsupported type");
  count(2);
  if (!ok_) return;
  texture_target(at(0), *site, d);
  texture_place(at(1), *site, c);
  emit_texture(std::move(site));
}

/// txq and suq: one fact of the object.
void decoder::do_texture_query() {
  static constexpr std::pair<std::string_view, texture_fact> facts[] = {
      {"width", texture_fact::width},
      {"height", texture_fact::height},
      {"depth", texture_fact::depth},
      {"channel_data_type", texture_fact::data_type},
      {"channel_order", texture_fact::channel_order},
      {"normalized_coords", texture_fact::normalized},
      {"force_unnormalized_coords", texture_fact::force_unnormalized},
      {"filter_mode", texture_fact::filter},
      {"addr_mode_0", texture_fact::address_mode_0},
      {"addr_mode_1", texture_fact::address_mode_1},
      {"addr_mode_2", texture_fact::address_mode_2},
      {"array_size", texture_fact::array_size},
      {"num_mipmap_levels", texture_fact::levels},
      {"num_samples", texture_fact::samples},
      {"memory_layout", texture_fact::memory_layout}};
  auto site = std::make_unique<texture_site>();
  site->action = now_->name == "txq" ? texture_action::query_texture : texture_action::query_surface;
  bool found = false;
  for (const auto& [name, fact] : facts) {
    if (!found && take(name)) found = true, site->fact = fact;
  }
  if (!found) return fail("unsupported query");
  take("b32");
  count(2);
  if (!ok_) return;
  const operand& o = at(1);
  if (o.kind != operand_kind::address || o.base != operand_kind::reg || o.value != 0 || !o.parts.empty())
    return fail("expected a texture or surface handle in a register");
  operand handle = o;
  handle.kind = operand_kind::reg;
  site->handle = source(handle, type::u64);
  site->data[0] = target(at(0), type::u32);
  site->count = 1;
  emit_texture(std::move(site));
}

void decoder::take_outside_rule(texture_site& site) {
  if (take("trap")) return;
  if (take("clamp")) {
    site.outside = outside_rule::clamp;
  } else if (take("zero")) {
    site.outside = outside_rule::zero;
  }
}

void decoder::take_surface_shape(texture_site& site) {
  take_cache_hints();
  site.count = take("v2") ? 2 : take("v4") ? 4 : 1;
  take_outside_rule(site);
}

/// {a} is a.
const operand& decoder::unwrapped(const operand& o) {
  return o.kind == operand_kind::list && o.parts.size() == 1 ? o.parts[0] : o;
}

void decoder::surface_values(const operand& o, const texture_site& site, std::vector<const operand*>& out) {
  memory_operands(site.count == 1 ? unwrapped(o) : o, site.count, out);
}

void decoder::do_surface_load() {
  auto site = std::make_unique<texture_site>();
  site->action = texture_action::load;
  if (!take("b")) return fail("expected .b");
  if (!take_geometry(*site)) return;
  take_surface_shape(*site);
  const type t = take_type();
  count(2);
  if (!ok_) return;
  std::vector<const operand*> d;
  surface_values(at(0), *site, d);
  site->element_bytes = size_of(t);
  if (!is_bits(t) || site->element_bytes > 8) return fail("unsupported type");
  texture_place(at(1), *site, type::s32);
  if (!ok_) return;
  for (std::size_t n = 0; n < site->count; ++n) site->data[n] = target(*d[n], t);
  emit_texture(std::move(site));
}

void decoder::do_surface_store() {
  auto site = std::make_unique<texture_site>();
  const bool texels = take("p");
  if (!texels && !take("b")) return fail("expected .b or .p");
  site->action = texels ? texture_action::store_texel : texture_action::store;
  site->in_texels = texels;
  if (!take_geometry(*site)) return;
  take_surface_shape(*site);
  const type t = take_type();
  count(2);
  if (!ok_) return;
  std::vector<const operand*> v;
  surface_values(at(1), *site, v);
  if (texels ? size_of(t) != 4 : !is_bits(t) || size_of(t) > 8) return fail("unsupported type");
  site->element_bytes = texels ? 1 : size_of(t);
  texture_place(at(0), *site, type::s32);
  if (!ok_) return;
  for (std::size_t n = 0; n < site->count; ++n) site->data[n] = source(*v[n], t);
  emit_texture(std::move(site));
}

void decoder::do_surface_reduce() {
  static constexpr std::pair<std::string_view, reduction> kinds[] = {{"add", reduction::add},
                                                                     {"min", reduction::min},
                                                                     {"max", reduction::max},
                                                                     {"and", reduction::and_},
                                                                     {"or", reduction::or_}};
  auto site = std::make_unique<texture_site>();
  site->action = texture_action::reduce;
  site->in_texels = take("p");
  if (!site->in_texels && !take("b")) return fail("expected .b or .p");
  bool found = false;
  for (const auto& [name, kind] : kinds) {
    if (!found && take(name)) found = true, site->how = kind;
  }
  if (!found) return fail("unsupported operation");
  if (!take_geometry(*site)) return;
  take_outside_rule(*site);
  const type t = take_type();
  count(2);
  if (!ok_) return;
  if ((size_of(t) != 4 && size_of(t) != 8) || is_float(t)) return fail("unsupported type");
  site->element_bytes = size_of(t), site->count = 1;
  site->is_signed = is_signed(t);
  texture_place(at(0), *site, type::s32);
  if (!ok_) return;
  site->data[0] = source(unwrapped(at(1)), t);
  emit_texture(std::move(site));
}

}  // namespace outboard::ptx
