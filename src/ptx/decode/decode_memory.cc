// ld, st, atom, red, fences.
#include <algorithm>
#include <bit>

#include "ptx/decode/decode.hh"

namespace outboard::ptx {

space decoder::take_space() {
  if (take("global")) return space::global;
  // A cluster is one block here, so its shared memory is the block's.
  if (take("shared") || take("shared::cta") || take("shared::cluster")) return space::shared;
  if (take("local")) return space::local;
  if (take("param") || take("param::entry") || take("param::func")) return space::param;
  if (take("const")) return space::constant;
  return space::generic;
}

/// Where data is cached changes nothing here.
void decoder::take_cache_hints() {
  for (const auto m : {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "mmio", "cta", "gpu", "sys", "cluster",
                       "weak", "unified"}) {
    take(m);
  }
  while (take_prefix("L1::") || take_prefix("L2::") || take_prefix("level::")) {
  }
}

decoder::located decoder::locate(const operand& o, space s) {
  located p;
  if (o.kind != operand_kind::address || !o.parts.empty()) return fail("expected an address"), p;
  p.offset = o.value;
  const auto window = [&](std::uint32_t bytes) {
    if (s == space::shared) return bytes == 4 ? where::shared32 : where::shared64;
    if (s == space::local) return bytes == 4 ? where::local32 : where::local64;
    return where::generic;
  };
  if (o.base == operand_kind::reg) {
    const std::uint32_t bytes = register_bytes(f_.register_type(o.index));
    p.window = window(bytes);
    p.address = slot(o.index);
    if (bytes != 8 && !(bytes == 4 && p.window != where::generic))
      fail("an address register must have 64 bits");
    return p;
  }
  if (o.base == operand_kind::integer) {
    p.offset = 0, p.window = window(8);
    p.address = constant(static_cast<std::uint64_t>(o.value), 8);
    return p;
  }
  if (o.base != operand_kind::symbol && o.base != operand_kind::local) return fail("unsupported address"), p;
  const variable* v = o.base == operand_kind::local ? &f_.variables[static_cast<std::size_t>(o.index)]
                                                    : module_variable(o.name);
  if (!v) return fail("unresolved symbol " + std::string(o.name)), p;
  if (v->where == space::param) {
    const auto index = static_cast<std::size_t>(o.index);
    if (s != space::param) return fail("a parameter needs ld.param or st.param"), p;
    if (f_.kernel && index < f_.parameters.size()) {
      p.kernel_parameter = true;
      p.offset = static_cast<std::int64_t>(lay_out(f_.parameters).offsets[index]) + o.value;
      return p;
    }
    p.window = where::local64;
    p.address = temporary(8);
    inst& i = emit(steps().local_address);
    i.r[0] = p.address, i.aux = 8, i.imm = out_.frame.offsets[index];
    return p;
  }
  if (v->where != s) return fail("variable " + std::string(v->name) + " is in another state space"), p;
  p.window = window(s == space::shared ? 4 : 8);
  p.offset = 0;
  p.address = address_value(o, s == space::shared ? 4 : 8);
  return p;
}

void decoder::memory_operands(const operand& o, std::uint32_t lanes, std::vector<const operand*>& out) {
  if (lanes == 1 && o.kind != operand_kind::list) {
    out.push_back(&o);
    return;
  }
  if (o.kind != operand_kind::list || o.parts.size() != lanes) {
    return fail("expected a vector of " + std::to_string(lanes) + " registers");
  }
  for (const auto& part : o.parts) out.push_back(&part);
}

void decoder::do_load() {
  const bool acquire = take("acquire") || take("volatile");
  take("relaxed");
  const space s = take_space();
  take_cache_hints();
  const std::uint32_t lanes = take("v2") ? 2 : take("v4") ? 4 : take("v8") ? 8 : 1;
  const type t = take_type(true);
  count(2, 3);  // the third is a cache policy
  std::vector<const operand*> d;
  memory_operands(at(0), lanes, d);
  if (!ok_) return;
  const located p = locate(at(1), s);
  const std::uint32_t bytes = size_of(t), log2 = static_cast<std::uint32_t>(std::countr_zero(bytes));
  if (t == type::pred || bytes * lanes > 32 || (lanes == 8 && bytes != 4)) return fail("unsupported type");
  if (p.kernel_parameter && bytes <= 8) {
    const auto end = p.offset + static_cast<std::int64_t>(bytes) * lanes;
    if (p.offset < 0 || end > static_cast<std::int64_t>(lay_out(f_.parameters).size))
      return fail("read beyond the parameters");
    for (std::uint32_t n = 0; n < lanes; ++n) {
      const auto to = target(*d[n], t);
      inst& i = emit(t == type::s8 ? steps().load_parameter_s8 : steps().load_parameter[log2]);
      i.r[0] = to, i.imm = p.offset + static_cast<std::int64_t>(n) * bytes;
    }
    return;
  }
  if (bytes * lanes > 16 || bytes > 8) {
    if (p.kernel_parameter) return fail("unsupported type");
    wide_access(false, t, lanes, d, p);
    if (acquire) emit(steps().fence);
    return;
  }
  std::uint32_t r[4] = {};
  for (std::uint32_t n = 0; n < lanes; ++n) r[n] = target(*d[n], t == type::s8 && lanes > 1 ? type::u8 : t);
  const int w = static_cast<int>(p.window);
  const bool sign8 = t == type::s8 && lanes == 1;
  inst& i = emit(sign8 ? steps().load_s8[w] : steps().load[w][log2][std::countr_zero(lanes)]);
  for (std::uint32_t n = 0; n < lanes; ++n) i.r[n] = r[n];
  i.r[4] = p.address, i.imm = p.offset;
  if (acquire && s != space::local && s != space::param) emit(steps().fence);
  if (t == type::s8 && lanes > 1) {
    for (std::uint32_t n = 0; n < lanes; ++n) convert_step(type::s8, type::u8, r[n], r[n], 0, false);
  }
}

void decoder::do_store() {
  if (take("async")) return do_async_store(false);
  const bool release = take("release") || take("volatile");
  take("relaxed");
  const space s = take_space();
  take_cache_hints();
  const std::uint32_t lanes = take("v2") ? 2 : take("v4") ? 4 : take("v8") ? 8 : 1;
  const type t = take_type(true);
  count(2, 3);
  std::vector<const operand*> v;
  memory_operands(at(1), lanes, v);
  if (!ok_) return;
  if (s == space::constant) return fail("constant memory is read-only");
  const located p = locate(at(0), s);
  if (p.kernel_parameter) return fail("kernel parameters are read-only");
  const std::uint32_t bytes = size_of(t), log2 = static_cast<std::uint32_t>(std::countr_zero(bytes));
  if (t == type::pred || bytes * lanes > 32 || (lanes == 8 && bytes != 4)) return fail("unsupported type");
  if (bytes * lanes > 16 || bytes > 8) {
    if (release) emit(steps().fence);
    return wide_access(true, t, lanes, v, p);
  }
  std::uint32_t r[4] = {};
  for (std::uint32_t n = 0; n < lanes; ++n) r[n] = source(*v[n], t);
  if (release && s != space::local && s != space::param) emit(steps().fence);
  inst& i = emit(steps().store[static_cast<int>(p.window)][log2][std::countr_zero(lanes)]);
  for (std::uint32_t n = 0; n < lanes; ++n) i.r[n] = r[n];
  i.r[4] = p.address, i.imm = p.offset;
}

void decoder::do_fence() {
  for (const auto m : {"sc", "acq_rel", "acquire", "release", "cta", "gpu", "gl", "sys", "cluster", "proxy",
                       "alias", "async", "async::generic", "sync_restrict::shared::cta",
                       "sync_restrict::shared::cluster", "mbarrier_init", "global"}) {
    take(m);
  }
  while (take_prefix("async.") || take_prefix("async::") || take_prefix("sync_restrict::") ||
         take_prefix("tensormap::") || take("shared::cta") || take("shared::cluster")) {
  }
  // fence.proxy.tensormap names the map: nothing is cached here.
  if (now_->operands.size() > 2) return fail("too many operands");
  emit(steps().fence);
}

void decoder::do_nothing() { std::fill(taken_.begin(), taken_.end(), true); }

}  // namespace outboard::ptx
