// cp.async, bulk copies, mbarrier, and what clusters add, which here are single blocks.
#include <bit>

#include "ptx/decode/decode.hh"
#include "ptx/run/plain_async.hh"
#include "ptx/run/plain_atomic.hh"

namespace outboard::ptx {
namespace {

constexpr std::pair<std::string_view, atom> reductions[] = {
    {"add", atom::add}, {"min", atom::min},  {"max", atom::max}, {"inc", atom::inc},
    {"dec", atom::dec}, {"and", atom::and_}, {"or", atom::or_},  {"xor", atom::xor_}};

}  // namespace

void decoder::do_mbarrier() {
  if (take("test_wait")) return mbarrier_test(false);
  if (take("try_wait")) return mbarrier_test(true);
  if (take("pending_count")) {
    if (!take("b64")) return fail("expected .b64");
    count(2);
    const auto a = source(at(1), type::b64), d = target(at(0), type::u32);
    plain(mbarrier_pending, d, {a});
    return;
  }
  mbarrier_step s;
  if (take("init")) {
    s.what = mbarrier_kind::init;
  } else if (take("inval")) {
    s.what = mbarrier_kind::invalidate;
  } else if (take("arrive")) {
    s.what = mbarrier_kind::arrive, s.expects = take("expect_tx");
  } else if (take("arrive_drop")) {
    s.what = mbarrier_kind::arrive_drop, s.expects = take("expect_tx");
  } else if (take("expect_tx")) {
    s.what = mbarrier_kind::expect_tx;
  } else if (take("complete_tx")) {
    s.what = mbarrier_kind::complete_tx;
  } else {
    return fail("unsupported operation");
  }
  const bool no_complete = take("noComplete");
  for (const auto m : {"relaxed", "release", "acquire", "cta", "cluster"}) take(m);
  const space where = take_space();
  if (!take("b64") && (s.what < mbarrier_kind::expect_tx)) return fail("expected .b64");
  const bool arrives = s.what == mbarrier_kind::arrive || s.what == mbarrier_kind::arrive_drop;
  // A remote arrival has no state; otherwise the first operand is the token, or a sink.
  const bool token = arrives && at(0).kind != operand_kind::address;
  const std::size_t first = token ? 1 : 0;
  const bool must = s.expects || no_complete || s.what == mbarrier_kind::init ||
                    s.what == mbarrier_kind::expect_tx || s.what == mbarrier_kind::complete_tx;
  count(first + (must ? 2 : 1), first + (s.what == mbarrier_kind::invalidate ? 1 : 2));
  if (!ok_) return;
  s.barrier = locate(at(first), where);
  if (now_->operands.size() > first + 1) s.count = source(at(first + 1), type::u32);
  if (token && at(0).kind != operand_kind::sink) s.has_state = true, s.state = target(at(0), type::b64);
  if (!ok_) return;
  // Register references start at 0: a count in the register at 0 must not look like none.
  if (s.count == 0 && now_->operands.size() > first + 1) {
    const auto copy = temporary(4);
    alu(op::mov, element::u32, copy, {s.count});
    s.count = copy;
  }
  detail<mbarrier_step>(mbarrier_run) = s;
}

void decoder::mbarrier_test(bool patient) {
  mbarrier_step s;
  s.patient = patient;
  s.what = take("parity") ? mbarrier_kind::test_parity : mbarrier_kind::test;
  for (const auto m : {"relaxed", "acquire", "cta", "cluster"}) take(m);
  const space where = take_space();
  if (!take("b64")) return fail("expected .b64");
  count(3, patient ? 4 : 3);  // the fourth is how long to wait at most
  if (!ok_) return;
  s.barrier = locate(at(1), where);
  s.state = source(at(2), s.what == mbarrier_kind::test ? type::b64 : type::u32);
  s.predicate = target_predicate(at(0));
  if (ok_) detail<mbarrier_step>(mbarrier_run) = s;
}

/// cp.async..., cp.reduce.async.bulk...
void decoder::do_copy_async() {
  const bool reduces = take("reduce");
  if (!take("async")) return fail("expected .async");
  if (has("tensor")) return fail("copies of tensors need a tensor map, which is not supported:");
  for (const auto m : {"commit_group", "wait_all"}) {
    if (take(m)) return take("bulk"), count(0);
  }
  if (take("wait_group")) return take("bulk"), take("read"), count(1);
  if (take("bulk")) return do_copy_bulk(reduces);
  if (take("mbarrier")) {
    // Copies before it are done: with .noinc it is an arrival; else the arrival it adds and makes cancel out.
    const bool counts = take("noinc");
    if (!take("arrive")) return fail("expected .arrive");
    const space where = take_space();
    if (!take("b64")) return fail("expected .b64");
    count(1);
    mbarrier_step s;
    s.what = counts ? mbarrier_kind::arrive : mbarrier_kind::expect_tx;
    s.barrier = locate(at(0), where);
    if (!counts) s.count = constant(0, 4);
    if (ok_) detail<mbarrier_step>(mbarrier_run) = s;
    return;
  }
  copy_step s;
  take("ca"), take("cg");
  if (!take("shared") && !take("shared::cta")) return fail("expected .shared");
  if (!take("global")) return fail("expected .global");
  take_cache_hints();
  count(3, 5);
  if (!ok_ || at(2).kind != operand_kind::integer) return fail("the size of a copy must be a constant");
  const auto bytes = at(2).value;
  if (bytes != 4 && bytes != 8 && bytes != 16) return fail("a copy must be of 4, 8 or 16 bytes");
  s.to_shared = true, s.bytes = static_cast<std::uint32_t>(bytes);
  s.to = locate(at(0), space::shared), s.from = locate(at(1), space::global);
  if (now_->operands.size() > 3) {
    const operand& o = at(3);
    const bool predicate = o.kind == operand_kind::reg && f_.register_type(o.index) == type::pred;
    const bool policy = o.kind == operand_kind::reg && register_bytes(f_.register_type(o.index)) == 8;
    if (predicate) {
      s.has_ignore = true, s.ignore = source_predicate(o);
    } else if (!policy) {
      s.has_size = true, s.size = source(o, type::u32);
    }
  }
  if (ok_) detail<copy_step>(copy_run) = s;
}

/// cp{.reduce}.async.bulk.DST.SRC.COMPLETION [dst], [src], size{, [mbar]}
void decoder::do_copy_bulk(bool reduces) {
  if (take("prefetch")) return take("L2"), take("global"), take_cache_hints();
  copy_step s;
  const auto spaces = [&](std::string_view m) {
    return m == "global" ? space::global : m.substr(0, 6) == "shared" ? space::shared : space::generic;
  };
  // Destination first: their order is that of the modifiers.
  std::vector<space> order;
  for (const auto m : now_->modifiers) {
    if (spaces(m) != space::generic) order.push_back(spaces(m));
  }
  if (order.size() != 2) return fail("expected two state spaces");
  while (take("shared") || take("shared::cta") || take("shared::cluster") || take("global")) {
  }
  s.completes = take("mbarrier::complete_tx::bytes");
  if (!s.completes && !take("bulk_group")) return fail("unsupported completion");
  if (take("multicast::cluster")) return fail("multicast to a cluster is not supported:");
  take_cache_hints();
  if (reduces) {
    for (const auto& [name, kind] : reductions) {
      if (s.reduce == atom::count && take(name)) s.reduce = kind;
    }
    take("noftz");
    const type t = take_type();
    s.kind = element_of(t);
    if (!ok_ || s.reduce == atom::count || s.kind == element::count || !atomic_known(s.reduce, s.kind)) {
      return fail("unsupported reduction");
    }
  }
  const std::size_t least = s.completes ? 4 : 3;
  count(least, least + 1);
  if (!ok_) return;
  s.to = locate(at(0), order[0]), s.from = locate(at(1), order[1]);
  s.to_shared = order[0] == space::shared;
  s.size = source(at(2), type::u32), s.has_size = true;
  if (s.completes) s.barrier = locate(at(3), space::shared);
  if (ok_) detail<copy_step>(copy_run) = s;
}

/// st.async, red.async: to the shared memory of a block of the cluster, completing on an mbarrier there.
void decoder::do_async_store(bool reduces) {
  remote_step s;
  for (const auto m : {"weak", "relaxed", "release", "cluster", "sys", "gpu"}) take(m);
  if (!take("shared::cluster")) return fail("unsupported state space");
  if (!take("mbarrier::complete_tx::bytes")) return fail("unsupported completion");
  if (reduces) {
    for (const auto& [name, kind] : reductions) {
      if (s.reduce == atom::count && take(name)) s.reduce = kind;
    }
    if (s.reduce == atom::count) return fail("unsupported operation");
  }
  s.elements = take("v2") ? 2 : take("v4") ? 4 : 1;
  const type t = take_type();
  count(3);
  s.bytes = size_of(t), s.kind = element_of(t);
  if (!ok_ || (s.bytes != 4 && s.bytes != 8) || s.elements * s.bytes > 16) return fail("unsupported type");
  if (reduces && !atomic_known(s.reduce, s.kind)) return fail("unsupported type");
  std::vector<const operand*> values;
  memory_operands(at(1), s.elements, values);
  if (!ok_) return;
  for (std::uint32_t n = 0; n < s.elements; ++n) s.value[n] = source(*values[n], t);
  s.to = locate(at(0), space::shared), s.barrier = locate(at(2), space::shared);
  if (ok_) detail<remote_step>(remote_run) = s;
}

/// barrier.cluster.arrive and .wait: of the one block that the cluster is.
void decoder::do_cluster_barrier() {
  const bool arrive = take("arrive");
  if (!arrive && !take("wait")) return fail("expected .arrive or .wait");
  for (const auto m : {"acquire", "release", "relaxed", "aligned"}) take(m);
  count(0);
  emit(arrive ? control().cluster_arrive : control().cluster_wait);
}

/// mapa: the address is the same in the only block there is; another rank's leads nowhere.
void decoder::do_map_shared() {
  const bool in_window = take("shared::cluster");
  const type t = take_type();
  count(3);
  const auto rank = source(at(2), type::u32);
  std::uint32_t a = 0;
  const operand& o = at(1);
  if (!ok_) return;
  if (o.kind == operand_kind::symbol || o.kind == operand_kind::local) {
    a = resize(address_value(o, 4), 4, size_of(t), false);
    if (!in_window) {
      const auto generic = temporary(8);
      inst& i = emit(steps().add_shared_base);
      i.r[0] = generic, i.r[1] = a;
      a = generic;
    }
  } else {
    a = source(o, t);
  }
  const auto d = target(at(0), t), first = temporary(0);
  const auto nowhere = constant(~std::uint64_t{0} << 4, size_of(t));
  alu(op::eq, element::u32, first, {rank, constant(0, 4)});
  alu(op::selp, bits_element(t), d, {a, nowhere, first});
}

void decoder::do_cta_rank() {
  take("shared::cluster");
  const type t = take_type();
  count(2);
  source(at(1), t);
  alu(op::mov, element::u32, target(at(0), type::u32), {constant(0, 4)});
}

/// createpolicy: what instructions with a policy operand ignore.
void decoder::do_policy() {
  std::fill(taken_.begin(), taken_.end(), true);
  if (!ok_) return;
  alu(op::mov, element::u64, target(at(0), type::b64), {constant(0, 8)});
}

void decoder::do_alloca() {
  const type t = take_type();
  count(2, 3);
  if (size_of(t) != 8) return fail("only 64-bit addresses are supported");
  const auto size = source(at(1), t), d = target(at(0), t);
  std::uint32_t align = 8;
  if (now_->operands.size() > 2) {
    if (at(2).kind != operand_kind::integer) return fail("the alignment must be a constant");
    align = static_cast<std::uint32_t>(at(2).value);
    if (!std::has_single_bit(align) || align > 4096) return fail("unsupported alignment");
  }
  inst& i = emit(control().allocate);
  i.r[0] = d, i.r[1] = size, i.aux = align;
}

void decoder::do_stack() {
  const type t = take_type();
  count(1);
  if (size_of(t) != 8) return fail("only 64-bit addresses are supported");
  if (now_->name == "stacksave") {
    const auto d = target(at(0), t);
    emit(control().stack_save).r[0] = d;
  } else {
    const auto a = source(at(0), t);
    emit(control().stack_restore).r[1] = a;
  }
}

}  // namespace outboard::ptx
