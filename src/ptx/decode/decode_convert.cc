// mov (with packing), cvt, cvta, isspacep.
#include <algorithm>

#include "ptx/decode/decode.hh"
#include "ptx/run/plain_atomic.hh"

namespace outboard::ptx {

void decoder::do_mov() {
  const type t = take_type(true);
  count(2);
  if (!ok_) return;
  const operand &d = at(0), &a = at(1);
  if (t == type::b128) return move_wide();
  if (t == type::pred) {
    const auto from = source_predicate(a), to = target_predicate(d);
    inst& i = emit(steps().mix_predicate[static_cast<int>(mix::mov)]);
    i.r[0] = to, i.r[1] = from;
    return;
  }
  const std::uint32_t bytes = register_bytes(t);
  if (d.kind == operand_kind::list || a.kind == operand_kind::list) {
    const auto& parts = d.kind == operand_kind::list ? d.parts : a.parts;
    const std::size_t n = parts.size();
    if (d.kind == a.kind || (n != 2 && n != 4) || bytes % n != 0 || bytes / n < 2) {
      return fail("unsupported form of mov");
    }
    const auto element = static_cast<std::uint32_t>(bytes / n);
    const type part = element == 4 ? type::b32 : type::b16;
    std::uint32_t r[5] = {};
    const bool packs = a.kind == operand_kind::list;
    r[0] = packs ? target(d, t) : source(a, t);
    for (std::size_t k = 0; k < n; ++k) r[k + 1] = packs ? source(parts[k], part) : target(parts[k], part);
    inst& i = emit(packs ? steps().pack : steps().unpack);
    std::copy(r, r + 5, i.r);
    i.aux = element, i.imm = static_cast<std::int64_t>(n);
    return;
  }
  if (bytes == 2 && size_of(t) == 1) return fail("unsupported type");
  const auto from = source(a, t);
  alu(op::mov, bits_element(t), target(d, t), {from});
}

/// mov.b128 d, {low, high}; mov.b128 {low, high}, a; mov.b128 d, a
void decoder::move_wide() {
  const operand &d = at(0), &a = at(1);
  const bool packs = a.kind == operand_kind::list, unpacks = d.kind == operand_kind::list;
  const auto& parts = packs ? a.parts : d.parts;
  if ((packs && unpacks) || ((packs || unpacks) && parts.size() != 2)) return fail("unsupported form of mov");
  if (packs) {
    const auto low = source(parts[0], type::b64), high = source(parts[1], type::b64),
               to = target(d, type::b128);
    plain(wide_move, to, {low, high}, 0);
  } else if (unpacks) {
    const auto from = source(a, type::b128), low = target(parts[0], type::b64),
               high = target(parts[1], type::b64);
    plain(wide_move, from, {low, high}, 1);
  } else {
    const auto from = source(a, type::b128), to = target(d, type::b128);
    plain(wide_move, to, {from}, 2);
  }
}

void decoder::convert_step(type to, type from, std::uint32_t d, std::uint32_t a, int mode, bool saturate) {
  const auto row = static_cast<int>(element_of(to)), column = static_cast<int>(element_of(from));
  if (row >= element_count || column >= element_count) return fail("unsupported conversion");
  const step converter = saturate ? steps().convert_sat[row][column] : steps().convert[row][column];
  const bool narrow = to == type::f16 || to == type::bf16;
  if (mode != 0 && !narrow) emit(steps().rounding).aux = static_cast<std::uint32_t>(mode);
  inst& i = emit(converter, "conversion");
  i.r[0] = d, i.r[1] = a, i.aux = narrow ? static_cast<std::uint32_t>(mode) : 0;
  if (mode != 0 && !narrow) emit(steps().rounding).aux = 0;
}

op decoder::take_integral_rounding() {
  static constexpr std::pair<std::string_view, op> integral[] = {
      {"rni", op::round_even}, {"rzi", op::round_zero}, {"rmi", op::round_down}, {"rpi", op::round_up}};
  op round = op::count;
  for (const auto& [name, o] : integral) {
    if (take(name)) round = o;
  }
  return round;
}

void decoder::convert_to_pair(type to, type from, int mode, bool sat, bool relu) {
  count(3);
  if (from != type::f32 || sat) return fail("unsupported conversion");
  const type half = to == type::f16x2 ? type::f16 : type::bf16;
  const auto high = source(at(1), from), low = source(at(2), from), d = target(at(0), to);
  const auto h = temporary(2), k = temporary(2);
  convert_step(half, from, h, high, mode, false);
  convert_step(half, from, k, low, mode, false);
  inst& i = emit(steps().pack);
  i.r[0] = d, i.r[1] = k, i.r[2] = h, i.aux = 2, i.imm = 2;
  if (relu) after_result(op::relu, element_of(to), d);
}

void decoder::do_cvt() {
  if (take("pack")) return do_cvt_pack();
  if (narrow_conversion()) return do_cvt_narrow();
  const op round = take_integral_rounding();
  const int mode = take_rounding();
  const bool ftz = take("ftz"), sat = take("sat"), relu = take("relu");
  const type to = take_type(), from = take_type();
  if (to == type::pred || from == type::pred) return fail("unsupported conversion");
  if (to == type::f16x2 || to == type::bf16x2) return convert_to_pair(to, from, mode, sat, relu);
  count(2);
  // Sources and destinations may be wider than their type: source() narrows, target() widens by the type's
  // sign.
  auto a = source(at(1), from);
  const auto d = target(at(0), to);
  if (is_integer(to) && is_integer(from)) return convert_step(to, from, d, a, 0, sat);
  type have = from;
  if (from == type::f16 || from == type::bf16) {
    if (to == from && round == op::count && !sat && !relu) return alu(op::mov, element::u16, d, {a});
    const auto wide = temporary(4);
    convert_step(type::f32, from, wide, a, 0, false);
    a = wide, have = type::f32;
  }
  a = flushed(a, have, ftz);
  if (!is_float(to)) {
    if (round != op::round_zero && round != op::count) {
      const auto rounded_value = temporary(register_bytes(have));
      alu(round, element_of(have), rounded_value, {a});
      a = rounded_value;
    }
    return convert_step(to, have, d, a, 0, false);
  }
  if (round != op::count) {
    const auto rounded_value = temporary(register_bytes(have));
    alu(round, element_of(have), rounded_value, {a});
    a = rounded_value;
  }
  if (is_integer(have) && (to == type::f16 || to == type::bf16)) {
    const type middle = to == type::f16 ? type::f64 : type::f32;
    const auto wide = temporary(register_bytes(middle));
    convert_step(middle, have, wide, a, middle == type::f32 ? mode : 0, false);
    a = wide, have = middle;
  }
  if (from == to && to == type::f32) {  // -0 is neutral, and a NaN comes out as the one that there is
    alu(op::add, element::f32, d, {a, constant(0x80000000, 4)});
  } else if (have == to) {
    alu(op::mov, bits_element(to), d, {a});
  } else {
    convert_step(to, have, d, a, mode, false);
  }
  if (ftz && to == type::f32) after_result(op::flush, element::f32, d);
  if (sat) after_result(op::saturate, element_of(to), d);
  if (relu) after_result(op::relu, element_of(to), d);
}

void decoder::do_cvta() {
  const bool to_space = take("to");
  const space s = take_space();
  const type t = take_type();
  count(2);
  if (size_of(t) != 8) return fail("only 64-bit addresses are supported");
  const auto a = source(at(1), t), d = target(at(0), t);
  if (s == space::shared) {
    inst& i = emit(to_space ? steps().sub_shared_base : steps().add_shared_base);
    i.r[0] = d, i.r[1] = a;
  } else if (s == space::local) {
    inst& i = emit(to_space ? steps().sub_lane_base : steps().add_lane_base);
    i.r[0] = d, i.r[1] = a;
  } else {
    alu(op::mov, element::u64, d, {a});  // generic addresses are host addresses
  }
}

void decoder::do_isspacep() {
  const space s = take_space();
  count(2);
  const auto a = source(at(1), type::u64), d = target_predicate(at(0));
  if (s == space::constant || s == space::param) {
    plain(control().in_space, d, {a}, s == space::constant ? 0 : 1);
    return;
  }
  inst& i = emit(steps().in_range);
  i.r[0] = d, i.r[1] = a, i.aux = s == space::shared ? 0 : s == space::local ? 1 : 2;
}

}  // namespace outboard::ptx
