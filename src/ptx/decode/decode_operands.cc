// Operands of a statement: what it reads, where it writes, addresses and special registers.
#include <bit>

#include "ptx/decode/decode.hh"

namespace outboard::ptx {
namespace {

/// Special registers that are the same for all lanes of a warp, and their bytes.
const std::map<std::string_view, std::pair<special, std::uint32_t>>& uniform_registers() {
  static const std::map<std::string_view, std::pair<special, std::uint32_t>> all = {
      {"%ntid.x", {special::ntid_x, 4}},
      {"%ntid.y", {special::ntid_y, 4}},
      {"%ntid.z", {special::ntid_z, 4}},
      {"%ctaid.x", {special::ctaid_x, 4}},
      {"%ctaid.y", {special::ctaid_y, 4}},
      {"%ctaid.z", {special::ctaid_z, 4}},
      {"%nctaid.x", {special::nctaid_x, 4}},
      {"%nctaid.y", {special::nctaid_y, 4}},
      {"%nctaid.z", {special::nctaid_z, 4}},
      {"%warpid", {special::warpid, 4}},
      {"%nwarpid", {special::nwarpid, 4}},
      {"%smid", {special::smid, 4}},
      {"%nsmid", {special::nsmid, 4}},
      {"%gridid", {special::gridid, 8}},
      {"%clock", {special::clock, 4}},
      {"%clock_hi", {special::clock_hi, 4}},
      {"%clock64", {special::clock64, 8}},
      {"%globaltimer", {special::timer, 8}},
      {"%globaltimer_lo", {special::timer_lo, 4}},
      {"%globaltimer_hi", {special::timer_hi, 4}},
      {"%envreg1", {special::envreg1, 4}},
      {"%envreg2", {special::envreg2, 4}},
      {"%dynamic_smem_size", {special::dynamic_shared, 4}},
      {"%total_smem_size", {special::total_shared, 4}},
      {"%tid.w", {special::zero, 4}},
      {"%ntid.w", {special::one, 4}},
      {"%clusterid.x", {special::ctaid_x, 4}},
      {"%clusterid.y", {special::ctaid_y, 4}},
      {"%clusterid.z", {special::ctaid_z, 4}},
      {"%nclusterid.x", {special::nctaid_x, 4}},
      {"%nclusterid.y", {special::nctaid_y, 4}},
      {"%nclusterid.z", {special::nctaid_z, 4}},
      {"%cluster_ctaid.x", {special::zero, 4}},
      {"%cluster_ctaid.y", {special::zero, 4}},
      {"%cluster_ctaid.z", {special::zero, 4}},
      {"%cluster_nctaid.x", {special::one, 4}},
      {"%cluster_nctaid.y", {special::one, 4}},
      {"%cluster_nctaid.z", {special::one, 4}},
      {"%cluster_ctarank", {special::zero, 4}},
      {"%cluster_nctarank", {special::one, 4}},
      {"%aggr_smem_size", {special::total_shared, 4}},
      {"%reserved_smem_offset_begin", {special::zero, 4}},
      {"%reserved_smem_offset_end", {special::zero, 4}},
      {"%reserved_smem_offset_cap", {special::zero, 4}},
      {"%reserved_smem_offset_0", {special::zero, 4}},
      {"%reserved_smem_offset_1", {special::zero, 4}},
      {"%current_graph_exec", {special::zero8, 8}},
      {"%ctaid.w", {special::zero, 4}},
      {"%nctaid.w", {special::one, 4}},
  };
  return all;
}

}  // namespace

const operand& decoder::at(std::size_t n) {
  static const operand missing;
  if (n < now_->operands.size()) return now_->operands[n];
  fail("operand " + std::to_string(n + 1) + " is missing");
  return missing;
}

void decoder::count(std::size_t least, std::size_t most) {
  if (now_->operands.size() >= least && now_->operands.size() <= most) return;
  fail(std::to_string(now_->operands.size()) + " operands, expected " + std::to_string(least) +
       (most == least ? "" : " to " + std::to_string(most)));
}

const variable* decoder::module_variable(std::string_view name) {
  const auto found = context_.variables.find(name);
  return found == context_.variables.end() ? nullptr : found->second;
}

std::uint64_t decoder::immediate(const operand& o, type t) {
  if (o.kind == operand_kind::real) {
    const bool wide = t == type::f64 || (size_of(t) == 8);
    if (size_of(t) < 4)
      fail("a floating-point constant does not fit the type");  // f16 constants are written as bits
    if (o.single == !wide) return static_cast<std::uint64_t>(o.value);
    if (wide)
      return std::bit_cast<std::uint64_t>(
          static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(o.value))));
    return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.value)));
  }
  if (t == type::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(o.value));
  if (t == type::f64) return std::bit_cast<std::uint64_t>(static_cast<double>(o.value));
  return static_cast<std::uint64_t>(o.value);
}

std::uint32_t decoder::resize(std::uint32_t reference, std::uint32_t from, std::uint32_t to, bool sign) {
  if (from == to) return reference;
  if (from > 8 || to > 8) return fail("expected a register of the type's width"), 0;
  const auto e = [&](std::uint32_t bytes) {
    if (bytes == 2) return sign ? element::s16 : element::u16;
    if (bytes == 4) return sign ? element::s32 : element::u32;
    return sign ? element::s64 : element::u64;
  };
  const auto d = temporary(to);
  inst& i = emit(steps().convert[static_cast<int>(e(to))][static_cast<int>(e(from))], "conversion");
  i.r[0] = d, i.r[1] = reference;
  return d;
}

std::uint32_t decoder::source(const operand& o, type t) {
  const std::uint32_t want = register_bytes(t);
  if (t == type::pred) return source_predicate(o);
  if (o.negated) return fail("'!' needs a predicate"), 0;
  if (!o.selector.empty()) return fail("a part of a register is no operand here"), 0;
  switch (o.kind) {
    case operand_kind::reg: {
      const type have = f_.register_type(o.index);
      if (have == type::pred) return fail("a predicate where a value is needed"), 0;
      std::uint32_t reference = slot(o.index);
      if (o.value != 0) {
        fail("a register with an offset is no operand here");
      }
      return resize(reference, register_bytes(have), want, is_signed(t));
    }
    case operand_kind::integer:
    case operand_kind::real:
      return constant(immediate(o, t), want);
    case operand_kind::special: {
      std::uint32_t have = 4;
      const auto reference = special_value(o.name, have);
      return resize(reference, have, want, false);
    }
    case operand_kind::symbol:
    case operand_kind::local:
      return address_value(o, want);
    default:
      return fail("unexpected kind of operand"), 0;
  }
}

std::uint32_t decoder::source_predicate(const operand& o) {
  if (o.kind == operand_kind::integer) return predicate_constant((o.value != 0) != o.negated);
  // No launch has clusters of its own choice.
  if (o.kind == operand_kind::special && o.name == "%is_explicit_cluster")
    return predicate_constant(o.negated);
  if (o.kind != operand_kind::reg || f_.register_type(o.index) != type::pred || !o.selector.empty())
    return fail("expected a predicate"), 0;
  const auto reference = slot(o.index);
  if (!o.negated) return reference;
  const auto d = temporary(0);
  inst& i = emit(steps().mix_predicate[static_cast<int>(mix::not_)]);
  i.r[0] = d, i.r[1] = reference;
  return d;
}

std::uint32_t decoder::target(const operand& o, type t) {
  const std::uint32_t want = register_bytes(t);
  if (t == type::pred) return target_predicate(o);
  if (o.kind == operand_kind::sink) return temporary(want);
  if (o.kind != operand_kind::reg || o.negated || o.value != 0 || !o.selector.empty())
    return fail("expected a register as destination"), 0;
  const type have = f_.register_type(o.index);
  if (have == type::pred) return fail("the destination is a predicate"), 0;
  if (register_bytes(have) == want) return slot(o.index);
  if (register_bytes(have) > 8 || want > 8) return fail("expected a register of the type's width"), 0;
  const auto d = temporary(want);
  const auto e = [&](std::uint32_t bytes) {
    const bool sign = is_signed(t);
    if (bytes == 2) return sign ? element::s16 : element::u16;
    if (bytes == 4) return sign ? element::s32 : element::u32;
    return sign ? element::s64 : element::u64;
  };
  inst i;
  i.run = steps().convert[static_cast<int>(e(register_bytes(have)))][static_cast<int>(e(want))];
  i.r[0] = slot(o.index), i.r[1] = d;
  after_.push_back(i);
  return d;
}

std::uint32_t decoder::target_predicate(const operand& o) {
  if (o.kind == operand_kind::sink) return temporary(0);
  if (o.kind != operand_kind::reg || o.negated || !o.selector.empty() ||
      f_.register_type(o.index) != type::pred) {
    return fail("expected a predicate as destination"), 0;
  }
  return slot(o.index);
}

/// The address a variable or function name stands for, in the way `mov` gives it.
std::uint32_t decoder::address_value(const operand& o, std::uint32_t bytes) {
  if (bytes != 4 && bytes != 8) return fail("an address does not fit the type"), 0;
  const variable* v = nullptr;
  if (o.kind == operand_kind::local || o.base == operand_kind::local) {
    v = &f_.variables[static_cast<std::size_t>(o.index)];
  } else {
    v = module_variable(o.name);
  }
  if (!v) {
    const auto found = context_.functions.by_name.find(o.name);
    if (found == context_.functions.by_name.end() || bytes != 8) {
      return fail("unresolved symbol " + std::string(o.name)), 0;
    }
    return constant(reinterpret_cast<std::uint64_t>(found->second), 8);
  }
  const auto addend = static_cast<std::uint64_t>(o.value);
  if (v->where == space::shared) {
    if (v->size != 0) return constant(context_.shared.offset(f_, *v) + addend, bytes);
    const auto base = temporary(4);
    inst& i = emit(control().special);
    i.r[0] = base, i.aux = static_cast<std::uint32_t>(special::dynamic_base);
    i.imm = o.value;
    return resize(base, 4, bytes, false);
  }
  if (v->where == space::global || v->where == space::constant) {
    if (bytes != 8) return fail("a 32-bit address of a global variable"), 0;
    const auto found = context_.addresses.find(v);
    if (found == context_.addresses.end()) return unresolved("variable " + std::string(v->name)), 0;
    return constant(found->second + addend, 8);
  }
  const auto index = static_cast<std::size_t>(v - f_.variables.data());
  if (v->where == space::param && f_.kernel && index < f_.parameters.size()) {
    if (bytes != 8) return fail("a 32-bit address of a parameter"), 0;
    const auto d = temporary(8);
    inst& i = emit(steps().parameter_address);
    i.r[0] = d, i.imm = static_cast<std::int64_t>(lay_out(f_.parameters).offsets[index] + addend);
    return d;
  }
  const auto d = temporary(bytes);
  inst& i = emit(steps().local_address);
  i.r[0] = d,
  i.imm = static_cast<std::int64_t>(static_cast<std::uint64_t>(out_.frame.offsets[index]) + addend);
  i.aux = bytes;
  if (v->where == space::param) {  // as generic address: that is how ld.param [reg] finds it
    if (bytes != 8) return fail("a 32-bit address of a parameter"), 0;
    inst& j = emit(steps().add_lane_base);
    j.r[0] = d, j.r[1] = d;
  }
  return d;
}

std::uint32_t decoder::special_value(std::string_view name, std::uint32_t& bytes) {
  bytes = 4;
  static const std::map<std::string_view, std::uint32_t> by_lane = {{"%laneid", 0},      {"%lanemask_lt", 1},
                                                                    {"%lanemask_le", 2}, {"%lanemask_gt", 3},
                                                                    {"%lanemask_ge", 4}, {"%lanemask_eq", 5}};
  if (name == "WARP_SZ") return constant(32, 4);
  if (name == "%tid.x" || name == "%tid.y" || name == "%tid.z") {
    const auto d = temporary(4);
    inst& i = emit(steps().thread_index);
    i.r[0] = d, i.aux = static_cast<std::uint32_t>(name.back() - 'x');
    return d;
  }
  if (const auto found = by_lane.find(name); found != by_lane.end()) {
    const auto d = temporary(4);
    inst& i = emit(steps().lanes_special);
    i.r[0] = d, i.aux = found->second;
    return d;
  }
  const auto& uniform = uniform_registers();
  auto found = uniform.find(name);
  special which;
  if (found != uniform.end()) {
    which = found->second.first, bytes = found->second.second;
  } else if (name.substr(0, 7) == "%envreg" || name.substr(0, 3) == "%pm") {
    which = special::zero;
  } else {
    return fail("unknown register " + std::string(name)), 0;
  }
  const auto d = temporary(bytes);
  inst& i = emit(control().special);
  i.r[0] = d, i.aux = static_cast<std::uint32_t>(which);
  return d;
}

}  // namespace outboard::ptx
