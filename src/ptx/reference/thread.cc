#include "ptx/reference/thread.hh"

#include <bit>
#include <cstring>

namespace outboard::ptx::reference {

thread::thread(machine& m, const prepared& kernel, dimensions id, dimensions block, char* shared)
    : machine_(m), id_(id), block_(block), shared_(shared) {
  push(kernel, nullptr);
}

void thread::push(const prepared& code, const instruction* call) {
  frame f;
  f.code = &code;
  f.registers.resize(static_cast<std::size_t>(code.source->register_count));
  f.memory = std::make_unique<std::uint64_t[]>(code.frame_bytes / 8 + 1);
  f.call = call;
  frames_.push_back(std::move(f));
}

std::uint64_t thread::special(std::string_view name) const {
  const auto axis = static_cast<std::size_t>(name.back() - 'x');
  if (name.substr(0, 5) == "%tid.") return id_[axis];
  if (name.substr(0, 6) == "%ntid.") return machine_.of->block[axis];
  if (name.substr(0, 7) == "%ctaid.") return block_[axis];
  if (name.substr(0, 8) == "%nctaid.") return machine_.of->grid[axis];
  if (name == "%laneid") return lane;
  if (name == "%lanemask_lt") return (std::uint64_t{1} << lane) - 1;
  if (name == "%lanemask_eq") return std::uint64_t{1} << lane;
  return 32;  // WARP_SZ
}

std::uint64_t thread::value(const operand& o, type t) {
  const unsigned bytes = t == type::pred ? 8 : size_of(t);
  switch (o.kind) {
    case operand_kind::reg: {
      const std::uint64_t v = top().registers[static_cast<std::size_t>(o.index)];
      return t == type::pred ? v ^ o.negated : masked(v, bytes);
    }
    case operand_kind::integer:
      if (t == type::f32) return std::bit_cast<std::uint32_t>(static_cast<float>(o.value));
      if (t == type::f64) return std::bit_cast<std::uint64_t>(static_cast<double>(o.value));
      return masked(static_cast<std::uint64_t>(o.value), bytes);
    case operand_kind::real:
      if (o.single && bytes == 8) {
        const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(o.value));
        return std::bit_cast<std::uint64_t>(static_cast<double>(single));
      }
      if (!o.single && bytes == 4) {
        return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.value)));
      }
      return static_cast<std::uint64_t>(o.value);
    case operand_kind::special:
      return special(o.name);
    case operand_kind::local: {
      const variable& v = top().code->source->variables[static_cast<std::size_t>(o.index)];
      const auto shared = machine_.shared_offsets.find(&v);
      if (shared != machine_.shared_offsets.end())
        return shared->second + static_cast<std::uint64_t>(o.value);
      return reinterpret_cast<std::uint64_t>(local(o.index)) + static_cast<std::uint64_t>(o.value);
    }
    case operand_kind::symbol: {
      const variable* v = machine_.of->code->find_variable(o.name);
      const auto shared = machine_.shared_offsets.find(v);
      if (shared != machine_.shared_offsets.end())
        return shared->second + static_cast<std::uint64_t>(o.value);
      return machine_.of->variables.at(o.name) + static_cast<std::uint64_t>(o.value);
    }
    default:
      return 0;
  }
}

void thread::set(const operand& o, type t, std::uint64_t v, bool signed_extension) {
  if (o.kind == operand_kind::sink) return;
  const type have = top().code->source->register_type(o.index);
  if (t != type::pred) {
    v = masked(v, size_of(t));
    if (signed_extension && size_of(have) > size_of(t)) {
      v = masked(static_cast<std::uint64_t>(extended(v, size_of(t))), size_of(have));
    }
  }
  top().registers[static_cast<std::size_t>(o.index)] = v;
}

char* thread::address(const operand& o, space where) {
  operand base = o;
  base.kind = o.base;
  base.value = 0;
  std::uint64_t at = static_cast<std::uint64_t>(o.value);
  if (base.kind == operand_kind::reg) {
    at += top().registers[static_cast<std::size_t>(o.index)];
    if (where == space::shared) at = masked(at, 4);
  } else if (base.kind == operand_kind::local && where == space::param && frames_.size() == 1 &&
             static_cast<std::size_t>(o.index) < top().code->source->parameters.size()) {
    const auto name = top().code->source->parameters[static_cast<std::size_t>(o.index)].name;
    return const_cast<char*>(reinterpret_cast<const char*>(machine_.of->parameters.data())) +
           machine_.parameter_offsets.at(name) + at;
  } else {
    at += value(base, type::u64);
  }
  return where == space::shared ? shared_ + at : reinterpret_cast<char*>(at);
}

status thread::memory_step(const instruction& i, const operation& o) {
  const unsigned bytes = size_of(o.t);
  const bool load = o.what == verb::ld;
  if (o.what == verb::atom || o.what == verb::red) {
    const std::size_t first = o.what == verb::atom ? 1 : 0;
    char* at = address(i.operands[first], o.where);
    std::uint64_t old = 0;
    std::memcpy(&old, at, bytes);
    const std::uint64_t b = value(i.operands[first + 1], o.t);
    const std::uint64_t c = o.by == update::cas ? value(i.operands[first + 2], o.t) : 0;
    const std::uint64_t now = updated(o.by, o.t, old, b, c);
    std::memcpy(at, &now, bytes);
    if (first == 1) set(i.operands[0], o.t, old);
    return {};
  }
  const operand& data = i.operands[load ? 0 : 1];
  char* at = address(i.operands[load ? 1 : 0], o.where);
  for (unsigned n = 0; n < o.lanes; ++n) {
    const operand& part = data.kind == operand_kind::list ? data.parts[n] : data;
    std::uint64_t v = load ? 0 : value(part, o.t);
    if (load) {
      std::memcpy(&v, at + n * bytes, bytes);
      set(part, o.t, v, is_signed(o.t));
    } else {
      std::memcpy(at + n * bytes, &v, bytes);
    }
  }
  return {};
}

status thread::call_step(const instruction& i) {
  std::size_t n = 0;
  if (i.operands[n].kind == operand_kind::list && i.operands.size() > 1 &&
      i.operands[1].kind == operand_kind::symbol)
    ++n;
  const function* callee = machine_.of->code->find_function(i.operands[n].name);
  if (!callee || !callee->defined) return failure("no function " + std::string(i.operands[n].name));
  const operand* arguments = n + 1 < i.operands.size() ? &i.operands[n + 1] : nullptr;
  std::vector<std::string> bytes;
  for (std::size_t k = 0; k < callee->parameters.size(); ++k) {
    bytes.emplace_back(local(arguments->parts[k].index), callee->parameters[k].size);
  }
  push(machine_.function_of(callee), &i);
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    std::memcpy(local(static_cast<std::int32_t>(callee->returns.size() + k)), bytes[k].data(),
                bytes[k].size());
  }
  return {};
}

void thread::return_step() {
  if (frames_.size() == 1) {
    waiting = wait::ended;
    return;
  }
  const frame done = std::move(frames_.back());
  frames_.pop_back();
  const function& callee = *done.code->source;
  for (std::size_t k = 0; k < callee.returns.size(); ++k) {
    std::memcpy(local(done.call->operands[0].parts[k].index),
                reinterpret_cast<char*>(done.memory.get()) + done.code->offsets[k], callee.returns[k].size);
  }
  ++top().next;
}

void thread::move_step(const instruction& i, const operation& o) {
  const operand &d = i.operands[0], &a = i.operands[1];
  if (d.kind == operand_kind::list) {
    const auto each = static_cast<unsigned>(size_of(o.t) / d.parts.size());
    const std::uint64_t v = value(a, o.t);
    for (std::size_t n = 0; n < d.parts.size(); ++n)
      set(d.parts[n], each == 2 ? type::b16 : type::b32, v >> (8 * each * n));
  } else if (a.kind == operand_kind::list) {
    const auto each = static_cast<unsigned>(size_of(o.t) / a.parts.size());
    std::uint64_t v = 0;
    for (std::size_t n = 0; n < a.parts.size(); ++n)
      v |= value(a.parts[n], each == 2 ? type::b16 : type::b32) << (8 * each * n);
    set(d, o.t, v);
  } else {
    set(d, o.t, value(a, o.t));
  }
}

void thread::compute_step(const instruction& i, const operation& o) {
  const auto operand_at = [&](std::size_t n, type t) {
    return n < i.operands.size() ? value(i.operands[n], t) : 0;
  };
  const operand& d = i.operands[0];
  if (o.what == verb::setp || o.what == verb::set) {
    const type t = o.what == verb::set ? o.other : o.t;
    const bool is = compare(o.compared, t, o.flushes, operand_at(1, t), operand_at(2, t));
    const bool more = o.combined && operand_at(3, type::pred) != 0;
    const auto with = [&](bool v) {
      return o.combined == '&'   ? v && more
             : o.combined == '|' ? v || more
             : o.combined == '^' ? v != more
                                 : v;
    };
    if (o.what == verb::set) {
      const std::uint64_t yes = o.t == type::f32 ? 0x3f800000 : 0xffffffff;
      return set(d, o.t, with(is) ? yes : 0);
    }
    if (d.kind != operand_kind::pair) return set(d, type::pred, with(is));
    set(d.parts[0], type::pred, with(is));
    return set(d.parts[1], type::pred, with(!is));
  }
  if (o.what == verb::selp) return set(d, o.t, operand_at(operand_at(3, type::pred) ? 1 : 2, o.t));
  if (o.what == verb::slct) {
    const bool first = o.other == type::f32
                           ? std::bit_cast<float>(static_cast<std::uint32_t>(operand_at(3, o.other))) >= 0
                           : extended(operand_at(3, o.other), 4) >= 0;
    return set(d, o.t, operand_at(first ? 1 : 2, o.t));
  }
  if (o.what == verb::cvt) return set(d, o.t, converted(o, operand_at(1, o.other)), is_signed(o.t));
  if (o.t == type::pred) {  // and, or, xor, not of predicates
    const bool a = operand_at(1, type::pred) != 0, b = operand_at(2, type::pred) != 0;
    return set(d, type::pred,
               o.what == verb::and_   ? a && b
               : o.what == verb::or_  ? a || b
               : o.what == verb::xor_ ? a != b
                                      : !a);
  }
  const bool shift = o.what == verb::shl || o.what == verb::shr, field = o.what == verb::bfe;
  operands in;
  in.a = operand_at(1, o.t);
  in.b = operand_at(2, shift || field ? type::u32 : o.t);
  const type wide = o.wide ? (size_of(o.t) == 2 ? type::u32 : type::u64) : o.t;
  in.c = operand_at(3, field || o.what == verb::bfi ? type::u32 : wide);
  if (o.what == verb::lop3) in.table = static_cast<unsigned>(i.operands[4].value);
  if (o.what == verb::bfi) in.d = operand_at(4, type::u32);
  in.carry = &carry_;
  const auto out = compute(o, in);
  const bool counts = o.what == verb::popc || o.what == verb::clz || o.what == verb::bfind;
  set(d, o.what == verb::testp ? type::pred : counts ? type::u32 : wide, out.value_or(0));
}

status thread::step() {
  frame& f = top();
  if (f.next >= f.code->source->body.size()) return return_step(), status();
  const instruction& i = f.code->source->body[f.next];
  const operation& o = f.code->operations[f.next];
  if (i.guard >= 0 && (f.registers[static_cast<std::size_t>(i.guard)] != 0) == i.guard_negated) {
    ++f.next;
    return {};
  }
  switch (o.what) {
    case verb::bra:
      f.next = static_cast<std::size_t>(i.operands[0].index);
      return {};
    case verb::ret:
      return_step();
      return {};
    case verb::exit:
      waiting = wait::ended;
      return {};
    case verb::call:
      return call_step(i);
    case verb::bar:
      waiting = o.warp ? wait::warp : wait::block_barrier;
      return {};
    case verb::shfl:
    case verb::vote:
    case verb::match:
    case verb::redux:
      waiting = wait::warp;
      return {};
    case verb::ld:
    case verb::st:
    case verb::atom:
    case verb::red:
      OUTBOARD_TRY(memory_step(i, o));
      break;
    case verb::mov:
      move_step(i, o);
      break;
    case verb::cvta:
      set(i.operands[0], type::u64, value(i.operands[1], type::u64));
      break;
    case verb::fence:
      break;
    case verb::activemask:
      return failure("the reference has no active mask: it runs one thread at a time");
    default:
      compute_step(i, o);
  }
  ++f.next;
  return {};
}

status thread::run() {
  while (waiting == wait::none) OUTBOARD_TRY(step());
  return {};
}

}  // namespace outboard::ptx::reference
