// Video instructions, halfword pairs, and integer oddities.
#include "ptx/decode/decode.hh"
#include "ptx/run/plain_integer.hh"

namespace outboard::ptx {
namespace {

/// b2 or h1 of a scalar operand.
bool scalar_part(std::string_view selector, std::uint8_t& first, std::uint8_t& bits) {
  if (selector.empty()) return true;
  if (selector.size() != 2 || selector[1] < '0') return false;
  const int n = selector[1] - '0';
  if (selector[0] == 'b' && n < 4) return first = static_cast<std::uint8_t>(8 * n), bits = 8, true;
  if (selector[0] == 'h' && n < 2) return first = static_cast<std::uint8_t>(16 * n), bits = 16, true;
  return false;
}

/// b3210 or h10: the part for each position, highest first.
bool simd_parts(std::string_view selector, int parts, std::uint8_t (&out)[4]) {
  if (selector.empty()) return true;
  if (selector[0] != (parts == 4 ? 'b' : 'h') || selector.size() != static_cast<std::size_t>(parts) + 1)
    return false;
  for (int n = 0; n < parts; ++n) {
    const int from = selector[static_cast<std::size_t>(parts - n)] - '0';
    if (from < 0 || from >= 2 * parts) return false;
    out[n] = static_cast<std::uint8_t>(from);
  }
  return true;
}

/// b20: which positions are written.
bool simd_mask(std::string_view selector, int parts, std::uint8_t& out) {
  if (selector.empty()) return out = static_cast<std::uint8_t>((1 << parts) - 1), true;
  if (selector[0] != (parts == 4 ? 'b' : 'h')) return false;
  out = 0;
  for (const char c : selector.substr(1)) {
    if (c < '0' || c >= '0' + parts) return false;
    out = static_cast<std::uint8_t>(out | 1 << (c - '0'));
  }
  return out != 0;
}

/// Puts into `v` which parts of its operands are read and written; false: an operand has no such part.
bool take_parts(const std::vector<operand>& operands, video_step& v) {
  if (v.parts == 1) {
    const bool good = scalar_part(operands[0].selector, v.d_first, v.d_bits) &&
                      scalar_part(operands[1].selector, v.a_first, v.a_bits) &&
                      scalar_part(operands[2].selector, v.b_first, v.b_bits);
    if (operands.size() == 4 && v.what != video::mad && v.merge == video_merge::none) {
      v.merge = video_merge::part;
    }
    return good;
  }
  if (v.parts == 2) v.b_select[0] = 2, v.b_select[1] = 3;
  return simd_mask(operands[0].selector, v.parts, v.mask) &&
         simd_parts(operands[1].selector, v.parts, v.a_select) &&
         simd_parts(operands[2].selector, v.parts, v.b_select);
}

/// The operand without its part; with `negate`, without its minus too, which goes there.
operand plain_operand(const operand& o, bool* negate) {
  operand p = o;
  p.selector = {};
  if (negate) *negate = p.negated, p.negated = false;
  return p;
}

}  // namespace

void decoder::do_video() {
  static const std::map<std::string_view, video> names = {
      {"vadd", video::add}, {"vsub", video::sub},   {"vabsdiff", video::absdiff}, {"vmin", video::min},
      {"vmax", video::max}, {"vavrg", video::avrg}, {"vshl", video::shl},         {"vshr", video::shr},
      {"vmad", video::mad}, {"vset", video::set}};
  video_step v;
  auto name = now_->name;
  if (name.back() == '2' || name.back() == '4') {
    v.parts = static_cast<std::uint8_t>(name.back() - '0');
    name.remove_suffix(1);
  }
  const auto found = names.find(name);
  if (found == names.end()) return fail("unsupported instruction");
  v.what = found->second;
  // Types first: their order is d, a, b; vset has none for d.
  const type d_type = v.what == video::set ? type::u32 : take_type();
  const type a_type = take_type(), b_type = take_type();
  for (const type t : {d_type, a_type, b_type}) {
    if (t != type::u32 && t != type::s32) return fail("unsupported type");
  }
  v.d_signed = d_type == type::s32, v.a_signed = a_type == type::s32, v.b_signed = b_type == type::s32;
  if (v.what == video::set) {
    static constexpr std::string_view compare[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    std::size_t n = 0;
    while (n < std::size(compare) && !take(compare[n])) ++n;
    if (n == std::size(compare)) return fail("expected a comparison");
    v.compare = static_cast<std::uint8_t>(n);
  }
  v.saturate = take("sat"), v.wrap = take("wrap"), take("clamp");
  v.plus_one = take("po");
  v.scale = take("shr7") ? 7 : take("shr15") ? 15 : 0;
  v.merge = take("add")   ? video_merge::add
            : take("min") ? video_merge::min
            : take("max") ? video_merge::max
                          : video_merge::none;
  const bool mad = v.what == video::mad;
  const bool must = mad || v.parts > 1 || v.merge != video_merge::none;
  count(must ? 4 : 3, 4);
  if (!ok_) return;
  if (!take_parts(now_->operands, v)) return fail("unsupported part of an operand");
  const auto a = source(plain_operand(at(1), mad ? &v.negate_a : nullptr), a_type);
  const auto b = source(plain_operand(at(2), mad ? &v.negate_b : nullptr), b_type);
  const auto c = now_->operands.size() == 4
                     ? source(plain_operand(at(3), mad ? &v.negate_c : nullptr), d_type)
                     : constant(0, 4);
  const auto d = target(plain_operand(at(0), nullptr), d_type);
  if (!ok_) return;
  detail<video_step>(video_run) = v;
  inst& i = out_.body.back();
  i.r[0] = d, i.r[1] = a, i.r[2] = b, i.r[3] = c;
}

void decoder::do_szext() {
  const bool wrap = take("wrap");
  if (!wrap && !take("clamp")) return fail("expected .clamp or .wrap");
  const type t = take_type();
  count(3);
  if (t != type::u32 && t != type::s32) return fail("unsupported type");
  const auto a = source(at(1), t), b = source(at(2), type::u32), d = target(at(0), t);
  plain(bits3_step(bits3::szext), d, {a, b, constant(0, 4)}, (t == type::s32 ? 1u : 0u) | (wrap ? 2u : 0u));
}

void decoder::do_fns() {
  const type t = take_type();
  count(4);
  if (t != type::b32) return fail("unsupported type");
  const auto a = source(at(1), t), b = source(at(2), type::u32), c = source(at(3), type::s32),
             d = target(at(0), t);
  plain(bits3_step(bits3::fns), d, {a, b, c});
}

/// add, sub, min, max, neg of .u16x2 and .s16x2.
void decoder::do_pair16() {
  const auto name = now_->name;
  const bool extra = take("sat") || take("relu");
  const type t = take_type();
  const pair16 which = name == "add"   ? pair16::add
                       : name == "sub" ? pair16::sub
                       : name == "min" ? pair16::min
                       : name == "max" ? pair16::max
                                       : pair16::neg;
  const bool unary = which == pair16::neg;
  count(unary ? 2 : 3);
  const auto a = source(at(1), t), b = unary ? a : source(at(2), t), d = target(at(0), t);
  plain(pair16_step(which), d, {a, b}, (t == type::s16x2 ? 1u : 0u) | (extra ? 2u : 0u));
}

}  // namespace outboard::ptx
