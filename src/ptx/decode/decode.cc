#include "ptx/decode/decode.hh"

#include <algorithm>
#include <cstring>
#include <new>
#include <set>

#include "ptx/run/plain_convert.hh"
#include "ptx/run/reach.hh"

namespace outboard::ptx {
namespace {

constexpr std::uint32_t no_slot = 0xffffffff;
// 32 warps of a block each hold one: 8 MiB would be 256 MiB a block.
constexpr std::uint32_t max_register_bytes = 8u << 20;
constexpr std::size_t max_shown = 160;
constexpr std::size_t max_constant_words = (64u << 20) / 8;
// A register parameter has a fixed place, so that callers know it before the callee is decoded.
constexpr std::uint32_t signature_register = 256;

}  // namespace

lane_memory make_lane_memory(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>((bytes + 63) & ~std::size_t{63}, 64);
  auto* p = static_cast<char*>(::operator new[](size, std::align_val_t{64}, std::nothrow));
  if (p) std::memset(p, 0, size);
  return lane_memory(p);
}

std::uint64_t signature_of(const std::vector<variable>& returns, const std::vector<variable>& parameters) {
  std::uint64_t hash = 1469598103934665603u;
  const auto add = [&](std::uint64_t v) { hash = (hash ^ v) * 1099511628211u; };
  for (const auto* list : {&returns, &parameters}) {
    add(list->size());
    for (const auto& v : *list) add(v.size), add(v.align), add(v.where == space::reg);
  }
  return hash;
}

decoder::decoder(decode_context& context, function_code& out)
    : context_(context), out_(out), f_(*out.source) {}

void decoder::unresolved(const std::string& name) {
  if (ok_) missing_ = true;
  fail("unresolved " + name);
}

void decoder::fail(const std::string& why) {
  if (!ok_) return;
  ok_ = false;
  message_ = "function " + std::string(f_.name) + ": " + why;
  if (now_) {
    std::string shown(now_->text.substr(0, max_shown));
    for (char& c : shown) c = c == '\n' || c == '\t' || c == '\r' ? ' ' : c;  // a refusal is one line
    message_ = "line " + std::to_string(now_->line) + ": " + message_ + ": " + shown;
  }
}

std::uint32_t decoder::allocate(std::uint32_t element_bytes) {
  if (element_bytes == 0) {
    const auto at = register_top_;
    register_top_ += 64;  // a predicate takes 4 bytes; see slot() for packing
    return at;
  }
  const auto at = register_top_;
  register_top_ += element_bytes * warp_lanes;
  if (register_top_ > max_register_bytes) fail("more registers than a warp may have"), register_top_ = 0;
  return at;
}

std::uint32_t decoder::slot(std::int32_t reg) {
  auto& s = slots_[static_cast<std::size_t>(reg)];
  if (s != no_slot) return s;
  const type t = f_.register_type(reg);
  s = allocate(t == type::pred ? 0 : register_bytes(t));
  return s;
}

std::uint32_t decoder::temporary(std::uint32_t element_bytes) {
  auto& [list, used] = temporaries_[element_bytes];
  if (used == list.size()) list.push_back(allocate(element_bytes));
  return list[used++];
}

std::uint32_t decoder::constant(std::uint64_t bits, std::uint32_t element_bytes) {
  if (element_bytes > 8) return fail("a constant of 128 bits"), 0;
  if (element_bytes < 8) bits &= (std::uint64_t{1} << (element_bytes * 8)) - 1;
  if (constant_words_.size() > max_constant_words) return fail("too many different constants"), 0;
  const auto [found, fresh] = constants_.try_emplace({bits, element_bytes}, 0);
  if (fresh) {
    found->second = static_cast<std::uint32_t>(constant_words_.size() * 8);
    std::uint64_t word = bits;
    for (std::uint32_t n = element_bytes; n < 8; n *= 2) word |= word << (n * 8);
    constant_words_.insert(constant_words_.end(), element_bytes * warp_lanes / 8, word);
  }
  return found->second | 1;
}

std::uint32_t decoder::predicate_constant(bool value) { return constant(value ? 0xffffffff : 0, 4); }

std::uint32_t decoder::carry() {
  if (carry_ == 0) carry_ = (register_top_ += 64), register_top_ += 64;
  return carry_;
}

inst& decoder::emit(step what_runs, const char* what) {
  if (!what_runs) fail(std::string("unsupported ") + what);
  out_.body.emplace_back();
  out_.body.back().run = what_runs;
  out_.statement.push_back(static_cast<std::uint32_t>(number_));
  return out_.body.back();
}

// ---- modifiers

bool decoder::take(std::string_view modifier) {
  for (std::size_t n = 0; n < taken_.size(); ++n) {
    if (!taken_[n] && now_->modifiers[n] == modifier) return taken_[n] = true;
  }
  return false;
}

bool decoder::take_prefix(std::string_view prefix) {
  for (std::size_t n = 0; n < taken_.size(); ++n) {
    if (!taken_[n] && now_->modifiers[n].substr(0, prefix.size()) == prefix) return taken_[n] = true;
  }
  return false;
}

bool decoder::has(std::string_view modifier) const {
  return std::find(now_->modifiers.begin(), now_->modifiers.end(), modifier) != now_->modifiers.end();
}

type decoder::take_type(bool wide) {
  for (std::size_t n = 0; n < taken_.size(); ++n) {
    if (taken_[n]) continue;
    const type t = type_of(now_->modifiers[n]);
    if (t == type::none) continue;
    taken_[n] = true;
    if (t == type::b128 && !wide) fail("128-bit types are not supported here");
    return t;
  }
  fail("no type that is supported");
  return type::u32;
}

int decoder::take_rounding() {
  if (take("rn")) return 0;
  if (take("rz")) return 1;
  if (take("rm")) return 2;
  return take("rp") ? 3 : 0;
}

void decoder::all_taken() {
  for (std::size_t n = 0; n < taken_.size(); ++n) {
    if (!taken_[n]) return fail("unsupported modifier ." + std::string(now_->modifiers[n]));
  }
}

// ---- emission helpers

element decoder::element_of(type t) {
  switch (t) {
    case type::b8:
    case type::u8:
      return element::u8;
    case type::b16:
    case type::u16:
      return element::u16;
    case type::b32:
    case type::u32:
      return element::u32;
    case type::b64:
    case type::u64:
      return element::u64;
    case type::s8:
      return element::s8;
    case type::s16:
      return element::s16;
    case type::s32:
      return element::s32;
    case type::s64:
      return element::s64;
    case type::f16:
      return element::f16;
    case type::bf16:
      return element::bf16;
    case type::f32:
      return element::f32;
    case type::f64:
      return element::f64;
    case type::f16x2:
      return element::f16x2;
    case type::bf16x2:
      return element::bf16x2;
    default:
      return element::count;
  }
}

element decoder::bits_element(type t) {
  switch (register_bytes(t)) {
    case 2:
      return element::u16;
    case 4:
      return element::u32;
    default:
      return element::u64;
  }
}

void decoder::alu(op o, element e, std::uint32_t d, std::initializer_list<std::uint32_t> sources) {
  if (e == element::count) return fail("unsupported type");
  inst& i = emit(steps().simple[static_cast<int>(o)][static_cast<int>(e)], "type for this instruction");
  i.r[0] = d;
  std::size_t n = 1;
  for (const auto s : sources) i.r[n++] = s;
}

inst& decoder::plain(step s, std::uint32_t d, std::initializer_list<std::uint32_t> sources,
                     std::uint32_t aux) {
  inst& i = emit(s);
  i.r[0] = d, i.aux = aux;
  std::size_t n = 1;
  for (const auto r : sources) i.r[n++] = r;
  return i;
}

void decoder::rounded(int mode, op o, element e, std::uint32_t d,
                      std::initializer_list<std::uint32_t> sources) {
  if (mode != 0) emit(steps().rounding).aux = static_cast<std::uint32_t>(mode);
  alu(o, e, d, sources);
  if (mode != 0) emit(steps().rounding).aux = 0;
}

std::uint32_t decoder::flushed(std::uint32_t reference, type t, bool ftz) {
  if (ftz && (t == type::f16 || t == type::f16x2)) {
    const auto d = temporary(register_bytes(t));
    plain(conversions().flush_half, d, {reference}, size_of(t));
    return d;
  }
  if (!ftz || (t != type::f32 && t != type::f64)) return reference;
  const auto d = temporary(register_bytes(t));
  alu(op::flush, element_of(t), d, {reference});
  return d;
}

void decoder::flush_result(type t, std::uint32_t d, bool ftz) {
  if (ftz && (t == type::f16 || t == type::f16x2)) plain(conversions().flush_half, d, {d}, size_of(t));
}

// ---- the function

void decoder::pre_layout() {
  slots_.assign(static_cast<std::size_t>(f_.register_count), no_slot);
  const std::size_t signature = f_.returns.size() + f_.parameters.size();
  for (std::size_t n = 0; n < signature; ++n) {
    const int reg = f_.variables[n].reg;
    if (reg >= 0) slots_[static_cast<std::size_t>(reg)] = static_cast<std::uint32_t>(n) * signature_register;
  }
  register_top_ = f_.kernel ? 0 : static_cast<std::uint32_t>(signature) * signature_register;
}

void decoder::statement(std::size_t number) {
  now_ = &f_.body[number];
  number_ = number;
  taken_.assign(now_->modifiers.size(), false);
  after_.clear();
  for (auto& [bytes, temporaries] : temporaries_) temporaries.second = 0;
  const auto found = handlers().find(now_->name);
  if (found == handlers().end()) return fail("unsupported instruction " + std::string(now_->name));

  const bool branch = now_->name == "bra";
  std::size_t opened = 0;
  bool around = false;
  std::uint32_t saved = 0;
  if (now_->guard >= 0 && !branch) {
    if (f_.register_type(now_->guard) != type::pred) return fail("the guard is no predicate");
    around = may_leave(now_->name);
    const bool negated = now_->guard_negated;
    opened = out_.body.size();
    if (around) {
      emit(negated ? steps().branch_if : steps().branch_unless).r[1] = slot(now_->guard);
    } else {
      saved = temporary(0);
      inst& i = emit(negated ? steps().guard_not : steps().guard);
      i.r[0] = saved, i.r[1] = slot(now_->guard);
    }
  }
  (this->*found->second)();
  if (!ok_) return;
  all_taken();
  for (const auto& i : after_) {
    out_.body.push_back(i);
    out_.statement.push_back(static_cast<std::uint32_t>(number));
  }
  if (now_->guard >= 0 && !branch) {
    if (!around) emit(steps().unguard).r[0] = saved;
    out_.body[opened].jump = static_cast<std::int32_t>(out_.body.size() - opened);
  }
}

void decoder::patch_branches() {
  const auto start = [&](std::int32_t s) { return starts_[static_cast<std::size_t>(s)]; };
  for (const auto& [from, to] : branches_) {
    out_.body[from].jump = static_cast<std::int32_t>(start(to)) - static_cast<std::int32_t>(from);
  }
  for (auto& table : out_.tables) {
    for (const auto s : table->statements) table->targets.push_back(out_.body.data() + start(s));
  }
}

void decoder::finish_constants() {
  out_.constants = make_lane_memory(constant_words_.size() * 8);
  if (!out_.constants) return fail("out of memory");
  if (!constant_words_.empty())
    std::memcpy(out_.constants.get(), constant_words_.data(), constant_words_.size() * 8);
}

status decoder::run() {
  auto frame = frame_of(f_);
  if (!frame) return std::move(frame).error();
  out_.frame = *std::move(frame);
  pre_layout();
  out_.body.reserve(f_.body.size() + f_.body.size() / 4 + 4);
  for (std::size_t n = 0; n < f_.body.size() && context_.refused.size() < context_.most_refused; ++n) {
    starts_.push_back(static_cast<std::uint32_t>(out_.body.size()));
    statement(n);
    if (!ok_ && !(missing_ && context_.open)) context_.refused.push_back(message_);
    ok_ = true, missing_ = false;
  }
  if (!context_.refused.empty()) return {};
  // Falling off the end returns.
  starts_.push_back(static_cast<std::uint32_t>(out_.body.size()));
  now_ = nullptr;
  number_ = f_.body.empty() ? 0 : f_.body.size() - 1;
  emit(f_.kernel ? control().exit : control().ret);
  patch_branches();
  finish_constants();
  out_.register_bytes = register_top_ + 64;
  if (!ok_) return failure(message_);
  return {};
}

result<std::unique_ptr<code>> decode(const program& p, const variable_addresses& addresses,
                                     std::size_t most_refused, bool open) {
  auto out = std::make_unique<code>();
  const auto shared = shared_of(p);
  if (!shared) return shared.error();
  decode_context context{p, *out, *shared, addresses, {}, most_refused, open, {}};
  for (const auto& v : p.variables) {
    // The definition wins over extern declarations, shared arrays without bound count as defined.
    auto& known = context.variables[v.name];
    if (!known || known->link == linkage::external) known = &v;
  }
  const auto reached = reached_functions(p);
  std::set<std::string_view> defined;
  for (const auto& [v, address] : addresses) {
    if (v->where == space::constant) out->constant_ranges.push_back({address, v->size});
  }
  for (const auto& f : p.functions) {
    if (!f.defined) continue;
    if (!defined.insert(f.name).second) {
      return failure("line " + std::to_string(f.line) + ": function " + std::string(f.name) +
                     " is defined twice");
    }
    if (!reached.contains(&f)) continue;
    function_code c;
    c.source = &f;
    c.name = f.name;
    c.signature = signature_of(f.returns, f.parameters);
    out->functions.push_back(std::move(c));
    auto& mine = out->functions.back();
    out->by_name.emplace(f.name, &mine);
    out->by_address.emplace(reinterpret_cast<std::uint64_t>(&mine), &mine);
  }
  for (const auto& [alias, target] : p.aliases) {
    const auto found = out->by_name.find(target);
    if (found != out->by_name.end()) out->by_name.emplace(alias, found->second);
  }
  for (auto& c : out->functions) {
    OUTBOARD_TRY(decoder(context, c).run());
    if (c.source->kernel) c.static_shared = shared->kernel_bytes.at(c.source);
    if (!c.source->kernel) continue;
    const auto stack = stack_of(p, *c.source, c.open_ended);
    if (!stack) return stack.error();
    c.stack = *stack;
  }
  if (!context.refused.empty()) {
    std::string all;
    for (const auto& line : context.refused) all += (all.empty() ? "" : "\n") + line;
    return failure(all);
  }
  return out;
}

}  // namespace outboard::ptx
