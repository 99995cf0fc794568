// Families that compute from registers to registers.
#include "ptx/decode/decode.hh"

namespace outboard::ptx {

bool decoder::wide_integer(op& lo) {
  if (take("wide")) return true;
  if (take("hi")) {
    lo = lo == op::mul ? op::mul_hi : op::mad_hi;
  } else {
    take("lo");
  }
  return false;
}

void decoder::do_add_sub() {
  if (has("u16x2") || has("s16x2")) return do_pair16();
  const bool subtract = now_->name[0] == 's';
  const bool with = now_->name.back() == 'c';  // addc, subc
  const bool cc = take("cc");
  const type t = take_type();
  count(3);
  if (with || cc) {
    const op o = with ? (subtract ? op::sub_with : op::add_with) : (subtract ? op::sub_carry : op::add_carry);
    const auto a = source(at(1), t), b = source(at(2), t), d = target(at(0), t);
    alu(o, bits_element(t), d, {a, b, carry()});
    if (ok_) out_.body.back().aux = cc;
    return;
  }
  const int mode = take_rounding();
  const bool ftz = take("ftz"), sat = take("sat");
  const auto a = flushed_half(source(at(1), t), t, ftz), b = flushed_half(source(at(2), t), t, ftz),
             d = target(at(0), t);
  op o = subtract ? op::sub : op::add;
  if (sat && t == type::s32) o = subtract ? op::sub_sat : op::add_sat;
  if (sat && is_integer(t) && t != type::s32) return fail(".sat needs .s32 or a floating-point type");
  if (ftz && t == type::f32) o = subtract ? op::sub_ftz : op::add_ftz;
  if (mode != 0 && t != type::f32 && t != type::f64) return fail("this rounding needs .f32 or .f64");
  rounded(mode, o, element_of(t), d, {a, b});
  flush_result(t, d, ftz);
  if (sat && is_float(t)) after_result(op::saturate, element_of(t), d);
}

void decoder::do_mul() {
  op o = op::mul;
  const bool wide = wide_integer(o);
  const int mode = take_rounding();
  const bool ftz = take("ftz"), sat = take("sat");
  const type t = take_type();
  count(3);
  const auto a = flushed_half(source(at(1), t), t, ftz), b = flushed_half(source(at(2), t), t, ftz);
  if (wide) {
    const type result = t == type::u16   ? type::u32
                        : t == type::s16 ? type::s32
                        : t == type::u32 ? type::u64
                                         : type::s64;
    if (size_of(t) > 4 || !is_integer(t)) return fail(".wide needs a type of 16 or 32 bits");
    return alu(op::mul_wide, element_of(t), target(at(0), result), {a, b});
  }
  const auto d = target(at(0), t);
  if (ftz && t == type::f32) o = op::mul_ftz;
  if (mode != 0 && t != type::f32 && t != type::f64) return fail("this rounding needs .f32 or .f64");
  rounded(mode, o, element_of(t), d, {a, b});
  flush_result(t, d, ftz);
  if (sat) after_result(op::saturate, element_of(t), d);
}

void decoder::do_mad() {
  const bool with = now_->name == "madc";
  const bool cc = take("cc");
  op o = op::mad;
  const bool wide = wide_integer(o);
  bool float_form = false;
  for (const auto m : now_->modifiers) float_form |= m == "f32" || m == "f64";
  if (float_form) return do_fma();
  const bool sat = take("sat");
  const type t = take_type();
  count(4);
  if (with || cc) {
    const auto a = source(at(1), t), b = source(at(2), t), c = source(at(3), t);
    const auto product = temporary(register_bytes(t));
    alu(o == op::mad_hi ? op::mul_hi : op::mul, element_of(t), product, {a, b});
    alu(with ? op::add_with : op::add_carry, bits_element(t), target(at(0), t), {product, c, carry()});
    if (ok_) out_.body.back().aux = cc;
    return;
  }
  const auto a = source(at(1), t), b = source(at(2), t);
  if (wide) {
    const type result = t == type::u16   ? type::u32
                        : t == type::s16 ? type::s32
                        : t == type::u32 ? type::u64
                                         : type::s64;
    if (size_of(t) > 4 || !is_integer(t)) return fail(".wide needs a type of 16 or 32 bits");
    const auto c = source(at(3), result);
    return alu(op::mad_wide, element_of(t), target(at(0), result), {a, b, c});
  }
  if (sat) o = op::mad_hi_sat;
  const auto c = source(at(3), t);
  alu(o, element_of(t), target(at(0), t), {a, b, c});
}

void decoder::do_fma() {
  const int mode = take_rounding();
  const bool ftz = take("ftz"), sat = take("sat"), relu = take("relu");
  const type t = take_type();
  count(4);
  const auto a = flushed_half(source(at(1), t), t, ftz), b = flushed_half(source(at(2), t), t, ftz),
             c = flushed_half(source(at(3), t), t, ftz), d = target(at(0), t);
  if (mode != 0 && t != type::f32 && t != type::f64) return fail("this rounding needs .f32 or .f64");
  rounded(mode, ftz && t == type::f32 ? op::fma_ftz : op::fma, element_of(t), d, {a, b, c});
  flush_result(t, d, ftz);
  if (sat) after_result(op::saturate, element_of(t), d);
  if (relu) after_result(op::relu, element_of(t), d);
}

void decoder::do_div() {
  const int mode = take_rounding();
  const bool approx = take("approx");
  take("full");
  const bool ftz = take("ftz");
  const type t = take_type();
  count(3);
  const auto a = flushed(source(at(1), t), t, ftz), b = flushed(source(at(2), t), t, ftz),
             d = target(at(0), t);
  rounded(mode, approx ? op::div_approx : op::div, element_of(t), d, {a, b});
  if (ftz && t == type::f32) after_result(op::flush, element_of(t), d);
}

void decoder::do_rem() {
  const type t = take_type();
  count(3);
  const auto a = source(at(1), t), b = source(at(2), t);
  alu(op::rem, element_of(t), target(at(0), t), {a, b});
}

void decoder::do_min_max() {
  if (has("u16x2") || has("s16x2")) return do_pair16();
  const bool least = now_->name == "min";
  const bool ftz = take("ftz"), nan = take("NaN"), relu = take("relu");
  const bool magnitudes = take("xorsign");
  if (magnitudes && !take("abs")) return fail("expected .xorsign.abs");
  const type t = take_type();
  const bool third = now_->operands.size() == 4 && t == type::f32 && !magnitudes;
  count(third ? 4 : 3);
  auto a = flushed(source(at(1), t), t, ftz), b = flushed(source(at(2), t), t, ftz);
  const auto d = target(at(0), t);
  const std::uint32_t bytes = register_bytes(t);
  const auto sign = temporary(bytes);
  const auto signs = [&] {
    const std::uint64_t mask = t == type::f32 ? 0x80000000 : bytes == 2 ? 0x8000 : 0x80008000;
    return constant(mask, bytes);
  };
  if (magnitudes) {
    alu(op::xor_, bits_element(t), sign, {a, b});
    alu(op::and_, bits_element(t), sign, {sign, signs()});
    const auto x = temporary(bytes), y = temporary(bytes);
    alu(op::abs, element_of(t), x, {a});
    alu(op::abs, element_of(t), y, {b});
    a = x, b = y;
  }
  const op o = nan ? (least ? op::min_nan : op::max_nan) : (least ? op::min : op::max);
  // d may be the register of the third operand.
  const auto first = third ? temporary(bytes) : d;
  alu(o, element_of(t), first, {a, b});
  if (third) alu(o, element_of(t), d, {first, flushed(source(at(3), t), t, ftz)});
  if (magnitudes) alu(op::xor_, bits_element(t), d, {d, sign});
  if (magnitudes && t == type::f32)
    alu(op::add, element::f32, d, {d, signs()});  // -0: changes NaNs only, to the one
  if (relu) after_result(op::max, element_of(t), d), out_.body.back().r[2] = constant(0, register_bytes(t));
}

void decoder::do_unary() {
  if (has("u16x2") || has("s16x2")) return do_pair16();
  const bool ftz = take("ftz");
  const type t = take_type();
  count(2);
  const auto name = now_->name;
  if (t == type::pred) {
    if (name != "not") return fail("unsupported type");
    const auto a = source_predicate(at(1)), d = target_predicate(at(0));
    inst& i = emit(steps().mix_predicate[static_cast<int>(mix::not_)]);
    i.r[0] = d, i.r[1] = a;
    return;
  }
  const op o = name == "neg"    ? op::neg
               : name == "abs"  ? op::abs
               : name == "cnot" ? op::cnot
               : name == "brev" ? op::brev
                                : op::not_;
  const auto a = flushed(source(at(1), t), t, ftz);
  alu(o, element_of(t), target(at(0), t), {a});
}

void decoder::do_count() {
  const auto name = now_->name;
  const bool shift = take("shiftamt");
  const type t = take_type();
  count(2);
  const op o = name == "popc" ? op::popc : name == "clz" ? op::clz : shift ? op::bfind_shift : op::bfind;
  const auto a = source(at(1), t);
  alu(o, element_of(t), target(at(0), type::u32), {a});
}

void decoder::do_logic() {
  const type t = take_type();
  count(3);
  const auto name = now_->name;
  if (t == type::pred) {
    const mix m = name == "and" ? mix::and_ : name == "or" ? mix::or_ : mix::xor_;
    const auto a = source_predicate(at(1)), b = source_predicate(at(2)), d = target_predicate(at(0));
    inst& i = emit(steps().mix_predicate[static_cast<int>(m)]);
    i.r[0] = d, i.r[1] = a, i.r[2] = b;
    return;
  }
  const op o = name == "and" ? op::and_ : name == "or" ? op::or_ : op::xor_;
  const auto a = source(at(1), t), b = source(at(2), t);
  alu(o, element_of(t), target(at(0), t), {a, b});
}

void decoder::do_shift() {
  const bool left = now_->name == "shl";
  const type t = take_type();
  count(3);
  const auto a = source(at(1), t), b = source(at(2), type::u32);
  alu(left ? op::shl : op::shr, left ? bits_element(t) : element_of(t), target(at(0), t), {a, b});
}

void decoder::do_math() {
  const auto name = now_->name;
  const int mode = take_rounding();
  const bool approx = take("approx"), ftz = take("ftz");
  const type t = take_type();
  count(2);
  const op o = name == "sqrt"    ? op::sqrt
               : name == "rsqrt" ? op::rsqrt
               : name == "rcp"   ? op::rcp
               : name == "ex2"   ? op::ex2
               : name == "lg2"   ? op::lg2
               : name == "sin"   ? op::sin
               : name == "cos"   ? op::cos
                                 : op::tanh;
  auto a = source(at(1), t);
  // Of the approximations in double only the upper words count, of the result and with .ftz of the operand.
  const auto upper = constant(0xffffffff00000000, 8);
  if (approx && ftz && t == type::f64) {
    const auto cut = temporary(8);
    alu(op::and_, element::u64, cut, {a, upper});
    a = cut;
  }
  const auto d = target(at(0), t);
  rounded(mode, o, element_of(t), d, {flushed(a, t, ftz)});
  if (ftz && (t == type::f32 || t == type::f64)) after_result(op::flush, element_of(t), d);
  if (approx && t == type::f64) alu(op::and_, element::u64, d, {d, upper});
}

void decoder::do_bfe() {
  const type t = take_type();
  count(4);
  const auto a = source(at(1), t), b = source(at(2), type::u32), c = source(at(3), type::u32);
  alu(op::bfe, element_of(t), target(at(0), t), {a, b, c});
}

void decoder::do_bfi() {
  const type t = take_type();
  count(5);
  const auto a = source(at(1), t), b = source(at(2), t), c = source(at(3), type::u32),
             e = source(at(4), type::u32);
  alu(op::bfi, bits_element(t), target(at(0), t), {a, b, c, e});
}

void decoder::do_lop3() {
  const bool conjunction = take("and"), combines = conjunction || take("or");
  const type t = take_type();
  count(combines ? 6 : 5);
  if (!ok_ || at(4).kind != operand_kind::integer) return fail("the table of lop3 must be a constant");
  const operand& o = at(0);
  const bool both = o.kind == operand_kind::pair;
  if (both != combines) return fail("expected a predicate exactly with .and or .or");
  const auto a = source(at(1), t), b = source(at(2), t), c = source(at(3), t);
  const auto combined = combines ? source_predicate(at(5)) : 0;
  const auto d = target(both ? o.parts[0] : o, t);
  alu(op::lop3, bits_element(t), d, {a, b, c});
  if (!ok_) return;
  out_.body.back().aux = static_cast<std::uint32_t>(at(4).value & 255);
  if (!both) return;
  const auto p = target_predicate(o.parts[1]), some = temporary(0);
  alu(op::ne, element::u32, some, {d, constant(0, 4)});
  inst& i = emit(steps().mix_predicate[static_cast<int>(conjunction ? mix::and_ : mix::or_)]);
  i.r[0] = p, i.r[1] = some, i.r[2] = combined;
}

void decoder::do_prmt() {
  static constexpr std::pair<std::string_view, bits3> modes[] = {
      {"f4e", bits3::prmt_f4e}, {"b4e", bits3::prmt_b4e}, {"rc8", bits3::prmt_rc8},
      {"ecl", bits3::prmt_ecl}, {"ecr", bits3::prmt_ecr}, {"rc16", bits3::prmt_rc16}};
  auto mode = bits3::count;
  for (const auto& [name, which] : modes) {
    if (mode == bits3::count && take(name)) mode = which;
  }
  const type t = take_type();
  count(4);
  const auto a = source(at(1), t), b = source(at(2), t), c = source(at(3), t);
  if (mode != bits3::count) {
    plain(bits3_step(mode), target(at(0), t), {a, b, c});
    return;
  }
  alu(op::prmt, bits_element(t), target(at(0), t), {a, b, c});
}

void decoder::do_shf() {
  const bool left = take("l");
  if (!left && !take("r")) return fail("expected .l or .r");
  const bool wrap = take("wrap");
  if (!wrap && !take("clamp")) return fail("expected .wrap or .clamp");
  const type t = take_type();
  count(4);
  const auto a = source(at(1), t), b = source(at(2), t), c = source(at(3), type::u32);
  const op o = left ? (wrap ? op::shf_l_wrap : op::shf_l_clamp) : (wrap ? op::shf_r_wrap : op::shf_r_clamp);
  alu(o, bits_element(t), target(at(0), t), {a, b, c});
}

/// dp4a, dp2a
void decoder::do_dot() {
  const bool two = now_->name == "dp2a", high = take("hi");
  if (two && !high && !take("lo")) return fail("expected .lo or .hi");
  const auto sign = [&](std::uint32_t bit) {
    const type t = take_type();
    if (t != type::u32 && t != type::s32) fail("unsupported type");
    return t == type::s32 ? bit : 0;
  };
  const std::uint32_t a_sign = sign(1), b_sign = sign(2);
  count(4);
  const type t = a_sign | b_sign ? type::s32 : type::u32;
  const auto a = source(at(1), type::u32), b = source(at(2), type::u32), c = source(at(3), t),
             d = target(at(0), t);
  if (!two && (a_sign != 0) == (b_sign != 0)) return alu(op::dp4a, element_of(t), d, {a, b, c});
  plain(bits3_step(two ? bits3::dp2a : bits3::dp4a), d, {a, b, c}, a_sign | b_sign | (high ? 4u : 0u));
}

void decoder::do_mul24() {
  const bool add = now_->name == "mad24", high = take("hi"), sat = take("sat");
  take("lo");
  const type t = take_type();
  count(add ? 4 : 3);
  const auto a = source(at(1), t), b = source(at(2), t);
  if (add && high) {
    const auto c = source(at(3), t), d = target(at(0), t);
    plain(bits3_step(bits3::mad24_hi), d, {a, b, c}, (t == type::s32 ? 1u : 0u) | (sat ? 2u : 0u));
    return;
  }
  if (sat) return fail(".sat needs mad24.hi");
  if (add) {
    const auto c = source(at(3), t);
    return alu(op::mad24, element_of(t), target(at(0), t), {a, b, c});
  }
  alu(high ? op::mul24_hi : op::mul24, element_of(t), target(at(0), t), {a, b});
}

void decoder::do_sad() {
  const type t = take_type();
  count(4);
  const auto a = source(at(1), t), b = source(at(2), t), c = source(at(3), t);
  alu(op::sad, element_of(t), target(at(0), t), {a, b, c});
}

void decoder::do_bmsk() {
  const bool wrap = take("wrap");
  take("clamp");
  const type t = take_type();
  count(3);
  const auto a = source(at(1), t), b = source(at(2), t);
  alu(wrap ? op::bmsk_wrap : op::bmsk_clamp, bits_element(t), target(at(0), t), {a, b});
}

void decoder::do_copysign() {
  const type t = take_type();
  count(3);
  const auto a = source(at(1), t), b = source(at(2), t);
  alu(op::copysign, element_of(t), target(at(0), t), {a, b});
}

void decoder::do_testp() {
  static const std::map<std::string_view, op> kinds = {{"finite", op::finite}, {"infinite", op::infinite},
                                                       {"number", op::number}, {"notanumber", op::notanumber},
                                                       {"normal", op::normal}, {"subnormal", op::subnormal}};
  op o = op::count;
  for (const auto& [name, kind] : kinds) {
    if (take(name)) o = kind;
  }
  if (o == op::count) return fail("unknown test");
  const type t = take_type();
  count(2);
  const auto a = source(at(1), t);
  alu(o, element_of(t), target_predicate(at(0)), {a});
}

op decoder::comparison() {
  static const std::map<std::string_view, op> names = {
      {"eq", op::eq},   {"ne", op::ne},   {"lt", op::lt},   {"le", op::le},   {"gt", op::gt},
      {"ge", op::ge},   {"lo", op::lt},   {"ls", op::le},   {"hi", op::gt},   {"hs", op::ge},
      {"equ", op::equ}, {"neu", op::neu}, {"ltu", op::ltu}, {"leu", op::leu}, {"gtu", op::gtu},
      {"geu", op::geu}, {"num", op::num}, {"nan", op::nan}};
  for (const auto& [name, o] : names) {
    if (take(name)) return o;
  }
  fail("no comparison that is supported");
  return op::eq;
}

/// p = (a op b) how combine; q, when wanted, the same with the comparison inverted.
void decoder::compare_into(std::uint32_t p, std::uint32_t q, bool with_q, const operand* combine, mix how,
                           op o, type t, bool ftz) {
  const auto a = flushed(source(at(1), t), t, ftz), b = flushed(source(at(2), t), t, ftz);
  const auto combined = combine ? source_predicate(*combine) : 0;
  const auto mixed = [&](mix m, std::uint32_t d, std::uint32_t x, std::uint32_t y) {
    inst& i = emit(steps().mix_predicate[static_cast<int>(m)]);
    i.r[0] = d, i.r[1] = x, i.r[2] = y;
  };
  // p or q may be the register `combine` names: everything goes through a temporary then.
  const auto plain = combine || with_q ? temporary(0) : p;
  alu(o, element_of(t), plain, {a, b});
  if (!combine && !with_q) return;
  if (!combine) {
    mixed(mix::mov, p, plain, 0);
    return mixed(mix::not_, q, plain, 0);
  }
  const auto inverse = temporary(0);
  if (with_q) {
    mixed(mix::not_, inverse, plain, 0);
    mixed(how, inverse, inverse, combined);
  }
  mixed(how, p, plain, combined);
  if (with_q) mixed(mix::mov, q, inverse, 0);
}

/// p of the low halves, q of the high ones.
void decoder::compare_pairs(std::uint32_t p, std::uint32_t q, op o, type t, bool ftz) {
  const element e = t == type::f16x2 ? element::f16 : element::bf16;
  std::uint32_t half[4];
  for (std::size_t n = 0; n < 2; ++n) {
    const auto pair = flushed(source(at(n + 1), t), t, ftz);
    half[n] = temporary(2), half[n + 2] = temporary(2);
    inst& i = emit(steps().unpack);
    i.r[0] = pair, i.r[1] = half[n], i.r[2] = half[n + 2], i.aux = 2, i.imm = 2;
  }
  alu(o, e, p, {half[0], half[1]});
  alu(o, e, q, {half[2], half[3]});
}

void decoder::do_setp() {
  const bool combine = take("and") || take("or") || take("xor");
  const mix how = has("and") ? mix::and_ : has("or") ? mix::or_ : mix::xor_;
  const op o = comparison();
  const bool ftz = take("ftz");
  const type t = take_type();
  count(combine ? 4 : 3);
  const operand& d = at(0);
  const bool both = d.kind == operand_kind::pair;
  if (!ok_) return;
  const auto p = target_predicate(both ? d.parts[0] : d), q = both ? target_predicate(d.parts[1]) : 0;
  if (t == type::f16x2 || t == type::bf16x2) {
    if (!both) return fail("expected two predicates");
    const auto low = temporary(0), high = temporary(0);
    const auto combined = combine ? source_predicate(at(3)) : 0;
    compare_pairs(low, high, o, t, ftz);
    const auto mixed = [&](mix m, std::uint32_t to, std::uint32_t from) {
      inst& i = emit(steps().mix_predicate[static_cast<int>(m)]);
      i.r[0] = to, i.r[1] = from, i.r[2] = combined;
    };
    if (combine) mixed(how, low, low), mixed(how, high, high);
    mixed(mix::mov, p, low), mixed(mix::mov, q, high);
    return;
  }
  compare_into(p, q, both, combine ? &at(3) : nullptr, how, o, t, ftz);
}

void decoder::do_set() {
  const bool combine = take("and") || take("or") || take("xor");
  mix how = mix::xor_;
  for (const auto m : now_->modifiers) how = m == "and" ? mix::and_ : m == "or" ? mix::or_ : how;
  const op o = comparison();
  const bool ftz = take("ftz");
  const type result = take_type(), t = take_type();
  count(combine ? 4 : 3);
  const bool half = result == type::f16 || result == type::bf16;
  if (t == type::f16x2 || t == type::bf16x2) {
    if (result != t && size_of(result) != 4) return fail("unsupported result type");
    const auto low = temporary(0), high = temporary(0);
    const auto combined = combine ? source_predicate(at(3)) : 0;
    compare_pairs(low, high, o, t, ftz);
    const auto yes = constant(result == type::f16x2 ? 0x3c00 : result == type::bf16x2 ? 0x3f80 : 0xffff, 2);
    std::uint32_t part[2] = {};
    for (std::size_t n = 0; n < 2; ++n) {
      const auto p = n == 0 ? low : high;
      if (combine) {
        inst& i = emit(steps().mix_predicate[static_cast<int>(how)]);
        i.r[0] = p, i.r[1] = p, i.r[2] = combined;
      }
      part[n] = temporary(2);
      alu(op::selp, element::u16, part[n], {yes, constant(0, 2), p});
    }
    const auto d = target(at(0), result);
    inst& i = emit(steps().pack);
    i.r[0] = d, i.r[1] = part[0], i.r[2] = part[1], i.aux = 2, i.imm = 2;
    return;
  }
  if (!half && (size_of(result) != 4 || result == type::f16x2 || result == type::bf16x2)) {
    return fail("unsupported result type");
  }
  if (!ok_) return;
  const auto p = temporary(0);
  compare_into(p, 0, false, combine ? &at(3) : nullptr, how, o, t, ftz);
  const std::uint32_t bytes = register_bytes(result);
  const std::uint64_t one = result == type::f32    ? 0x3f800000
                            : result == type::f16  ? 0x3c00
                            : result == type::bf16 ? 0x3f80
                                                   : 0xffffffff;
  const auto yes = constant(one, bytes), no = constant(0, bytes);
  alu(op::selp, bits_element(result), target(at(0), result), {yes, no, p});
}

void decoder::do_selp() {
  const type t = take_type();
  count(4);
  const auto a = source(at(1), t), b = source(at(2), t), p = source_predicate(at(3));
  alu(op::selp, bits_element(t), target(at(0), t), {a, b, p});
}

void decoder::do_slct() {
  const bool ftz = take("ftz");
  const type t = take_type(), selector = take_type();
  count(4);
  if (selector != type::s32 && selector != type::f32) return fail("unsupported selector type");
  const auto a = source(at(1), t), b = source(at(2), t), c = flushed(source(at(3), selector), selector, ftz);
  alu(selector == type::f32 ? op::slct_f32 : op::slct, bits_element(t), target(at(0), t), {a, b, c});
}

}  // namespace outboard::ptx
