// cvt to and from formats that are no PTX register types, cvt.pack, and halves with the rarer roundings.
#include "ptx/decode/decode.hh"
#include "ptx/run/plain_convert.hh"

namespace outboard::ptx {
namespace {

constexpr std::pair<std::string_view, narrow> packed_formats[] = {{"e4m3x2", narrow::e4m3},
                                                                  {"e5m2x2", narrow::e5m2},
                                                                  {"e2m3x2", narrow::e2m3},
                                                                  {"e3m2x2", narrow::e3m2},
                                                                  {"e2m1x2", narrow::e2m1}};

/// The format of a pair with this name; -1: there is none.
int packed_format(std::string_view name) {
  for (const auto& [text, format] : packed_formats) {
    if (text == name) return static_cast<int>(format);
  }
  return -1;
}

}  // namespace

/// Whether do_cvt leaves this one to do_cvt_narrow.
bool decoder::narrow_conversion() const {
  if (has("tf32") || has("satfinite")) return true;
  for (const auto& [name, format] : packed_formats) {
    if (has(name)) return true;
  }
  // Roundings of bf16 that its lane loop does not have, and integers, which it would round twice.
  const auto& m = now_->modifiers;
  std::size_t first = 0;
  while (first < m.size() && type_of(m[first]) == type::none) ++first;
  if (first + 1 >= m.size()) return false;
  const type to = type_of(m[first]), from = type_of(m[first + 1]);
  if (to == type::bf16x2 || to == type::f16x2) return has("rz") || has("rm") || has("rp");
  return to == type::bf16 && from != type::bf16 && (from != type::f32 || has("rm") || has("rp"));
}

void decoder::convert_to_packed(narrow_form form, type from) {
  if (from == type::f32) {
    count(3);
    const auto high = source(at(1), from), low = source(at(2), from), d = target(at(0), type::b16);
    plain(conversions().two, d, {high, low}, form.encode());
    return;
  }
  count(2);
  if (from != type::f16x2 && from != type::bf16x2) return fail("unsupported conversion");
  form.from = from == type::f16x2 ? number::f16 : number::bf16;
  const auto a = source(at(1), from), d = target(at(0), type::b16);
  plain(conversions().pair, d, {a}, form.encode());
}

void decoder::convert_to_half(narrow_form form, type to, type from, bool sat, bool ftz) {
  count(2);
  form.to = to == type::bf16 ? narrow::bf16 : narrow::f16;
  std::uint32_t a = 0;
  if (is_integer(from)) {
    const type wide = is_signed(from) ? type::s64 : type::u64;
    a = source(at(1), from);
    const auto extended = temporary(8);
    convert_step(wide, from, extended, a, 0, false);
    a = extended, form.from = is_signed(from) ? number::s64 : number::u64;
  } else if (from == type::f16 || from == type::bf16 || from == type::f32 || from == type::f64) {
    a = flushed(source(at(1), from), from, ftz);
    form.from = from == type::f16    ? number::f16
                : from == type::bf16 ? number::bf16
                : from == type::f32  ? number::f32
                                     : number::f64;
  } else {
    return fail("unsupported conversion");
  }
  const auto d = target(at(0), to);
  plain(conversions().one, d, {a}, form.encode());
  if (sat) after_result(op::saturate, element_of(to), d);
}

void decoder::do_cvt_narrow() {
  narrow_form form;
  form.mode = take("rn")    ? rounding::nearest
              : take("rna") ? rounding::away
              : take("rz")  ? rounding::zero
              : take("rm")  ? rounding::down
              : take("rp")  ? rounding::up
                            : rounding::nearest;
  form.finite = take("satfinite"), form.relu = take("relu");
  const bool sat = take("sat"), ftz = take("ftz");
  if (has("rs") || has("scaled::n2::ue8m0")) return fail("unsupported conversion");
  // The first type of the two, in the order written.
  std::size_t n = 0;
  while (n < taken_.size() && taken_[n]) ++n;
  if (n + 2 != taken_.size()) return fail("unsupported conversion");
  const auto to_name = now_->modifiers[n], from_name = now_->modifiers[n + 1];
  const type to = type_of(to_name), from = type_of(from_name);
  taken_[n] = taken_[n + 1] = true;
  const auto& c = conversions();
  if (const int format = packed_format(to_name); format >= 0) {
    form.to = static_cast<narrow>(format);
    if (sat || ftz) return fail("unsupported conversion");
    return convert_to_packed(form, from);
  }
  if (const int format = packed_format(from_name); format >= 0) {
    count(2);
    if ((to != type::f16x2 && to != type::bf16x2) || sat || ftz) return fail("unsupported conversion");
    form.to = static_cast<narrow>(format), form.from = to == type::f16x2 ? number::f16 : number::bf16;
    const auto a = source(at(1), type::b16), d = target(at(0), to);
    plain(c.widen, d, {a}, form.encode());
    return;
  }
  if (to_name == "tf32") {
    count(2);
    if (from != type::f32 || sat) return fail("unsupported conversion");
    form.to = narrow::tf32;
    const auto a = source(at(1), from), d = target(at(0), type::b32);
    plain(c.one, d, {a}, form.encode());
    return;
  }
  if (to == type::f16x2 || to == type::bf16x2) {
    count(3);
    if (from != type::f32 || sat) return fail("unsupported conversion");
    form.to = to == type::f16x2 ? narrow::f16 : narrow::bf16;
    const auto high = source(at(1), from), low = source(at(2), from), d = target(at(0), to);
    plain(c.two, d, {high, low}, form.encode());
    return;
  }
  if (to != type::bf16 && to != type::f16) return fail("unsupported conversion");
  convert_to_half(form, to, from, sat, ftz);
}

/// cvt.pack.sat.u8.s32.b32 d, a, b, c
void decoder::do_cvt_pack() {
  if (!take("sat")) return fail("expected .sat");
  struct form {
    std::string_view name;
    std::uint32_t bits;
    bool sign;
  };
  static constexpr form forms[] = {{"u16", 16, false}, {"s16", 16, true}, {"u8", 8, false}, {"s8", 8, true},
                                   {"u4", 4, false},   {"s4", 4, true},   {"u2", 2, false}, {"s2", 2, true}};
  const form* to = nullptr;
  for (const auto& f : forms) {
    if (!to && take(f.name)) to = &f;
  }
  if (!to || !take("s32")) return fail("unsupported conversion");
  const bool third = to->bits < 16;
  if (third && !take("b32")) return fail("expected .b32");
  count(third ? 4 : 3);
  const auto a = source(at(1), type::s32), b = source(at(2), type::s32),
             c = third ? source(at(3), type::b32) : constant(0, 4), d = target(at(0), type::b32);
  plain(conversions().pack, d, {a, b, c}, to->bits | (to->sign ? 256u : 0u));
}

}  // namespace outboard::ptx
