// Branches, calls, barriers, warp-wide instructions, and the list of all instructions.
#include <algorithm>

#include "ptx/decode/decode.hh"

namespace outboard::ptx {
namespace {

/// What the device library of the CUDA runtime asks for, by the names and signatures that it has in PTX.
builtin child_builtin(const function& f) {
  struct known {
    std::string_view name;
    std::size_t parameters;
    builtin what;
  };
  constexpr known all[] = {
      {"GetParameterBufferV2", 4, builtin::child_parameters},
      {"LaunchDeviceV2", 2, builtin::child_launch},
      {"GetLastError", 0, builtin::child_get_error},
      {"SetLastError", 1, builtin::child_set_error},
      {"StreamCreate", 2, builtin::child_stream_create},
      {"StreamDestroy", 1, builtin::child_stream_destroy},
  };
  constexpr std::string_view prefix = "__cuda_syscall_cnpv2";
  if (f.name.substr(0, prefix.size()) != prefix || f.returns.size() != 1) return builtin::none;
  for (const known& k : all) {
    if (f.name.substr(prefix.size()) == k.name && f.parameters.size() == k.parameters) return k.what;
  }
  return builtin::none;
}

/// What the device provides for a function that the text declares only, by the name that a call has for it.
builtin provided_builtin(std::string_view name, const function& f) {
  const std::size_t returns = f.returns.size(), parameters = f.parameters.size();
  if (name == "vprintf" && parameters == 2) return builtin::vprintf;
  if (name == "__assertfail" && parameters == 5) return builtin::assertfail;
  if (name == "malloc" && parameters == 1 && returns == 1) return builtin::malloc;
  if (name == "free" && parameters == 1) return builtin::free;
  if (name == "cudaGraphSetConditional" && parameters == 2) return builtin::set_conditional;
  return child_builtin(f);
}

}  // namespace

void decoder::do_branch() {
  take("uni");
  count(1);
  if (!ok_ || at(0).kind != operand_kind::label || at(0).index < 0) return fail("expected a label");
  branches_.emplace_back(out_.body.size(), at(0).index);
  if (now_->guard < 0) {
    emit(steps().branch);
    return;
  }
  if (f_.register_type(now_->guard) != type::pred) return fail("the guard is no predicate");
  const auto p = slot(now_->guard);
  emit(now_->guard_negated ? steps().branch_unless : steps().branch_if).r[1] = p;
}

void decoder::do_branch_indexed() {
  if (!take("idx")) return fail("expected .idx");
  take("uni");
  count(2);
  if (!ok_) return;
  const auto found = f_.branch_tables.find(at(1).name);
  if (found == f_.branch_tables.end()) return fail("no .branchtargets of this name");
  const auto index = source(at(0), type::u32);
  auto table = std::make_unique<jump_table>();
  table->statements = found->second;
  inst& i = emit(control().jump_indexed);
  i.r[1] = index, i.imm = reinterpret_cast<std::int64_t>(table.get());
  out_.tables.push_back(std::move(table));
}

/// One argument or result: operand `o` of the caller against the callee's variable.
void decoder::pass(const operand& o, const variable& formal, std::size_t position, std::uint32_t offset,
                   transfer& t) {
  t.bytes = static_cast<std::uint32_t>(formal.size);
  t.callee_register = formal.where == space::reg;
  t.callee = t.callee_register ? static_cast<std::uint32_t>(position) * 256 : offset;
  if (t.callee_register && (formal.kind == type::pred || size_of(formal.kind) > 8)) {
    return fail("unsupported type of a register parameter");
  }
  if (o.kind == operand_kind::local) {
    const auto index = static_cast<std::size_t>(o.index);
    const auto& v = f_.variables[index];
    if (v.where != space::param || out_.frame.offsets[index] < 0 || v.size != formal.size) {
      return fail("argument " + std::string(v.name) + " does not match the parameter");
    }
    t.caller = static_cast<std::uint32_t>(out_.frame.offsets[index]);
    return;
  }
  t.caller_register = true;
  if (formal.size > 8 || formal.kind == type::pred) return fail("the argument does not match the parameter");
}

const function* decoder::direct_callee(std::string_view name, call_site& site) {
  const auto defined = context_.functions.by_name.find(name);
  const function* callee = defined != context_.functions.by_name.end() ? defined->second->source
                                                                       : context_.tree.find_function(name);
  if (!callee) return fail("unresolved function " + std::string(name)), nullptr;
  if (callee->defined) {
    site.callee = context_.functions.by_name.at(callee->name);
    if (callee->kernel) return fail("a kernel cannot be called"), nullptr;
    return callee;
  }
  site.provided = provided_builtin(name, *callee);
  if (site.provided == builtin::none) return unresolved("extern function " + std::string(name)), nullptr;
  for (const auto& v : callee->parameters) {
    if (v.where != space::param) return fail("unsupported declaration of " + std::string(name)), nullptr;
  }
  return callee;
}

void decoder::do_call() {
  take("uni");
  std::size_t n = 0;
  const operand *returns = nullptr, *arguments = nullptr;
  if (at(n).kind == operand_kind::list) returns = &at(n++);
  const operand& what = at(n++);
  if (n < now_->operands.size() && at(n).kind == operand_kind::list) arguments = &at(n++);
  const operand* form = n < now_->operands.size() ? &at(n++) : nullptr;
  if (!ok_ || n != now_->operands.size()) return fail("unsupported form of call");

  auto site = std::make_unique<call_site>();
  const std::vector<variable>*formal_returns = nullptr, *formal_parameters = nullptr;
  if (what.kind == operand_kind::reg) {
    site->pointer = source(what, type::u64);
    const auto found = form ? f_.prototypes.find(form->name) : f_.prototypes.end();
    if (found == f_.prototypes.end()) return fail("an indirect call needs a .callprototype");
    formal_returns = &found->second.returns, formal_parameters = &found->second.parameters;
  } else {
    const function* callee = direct_callee(what.name, *site);
    if (!callee) return;
    formal_returns = &callee->returns, formal_parameters = &callee->parameters;
  }
  const auto list_size = [](const operand* o) { return o ? o->parts.size() : 0; };
  if (list_size(returns) != formal_returns->size() || list_size(arguments) != formal_parameters->size()) {
    return fail("the number of arguments does not match the function");
  }
  site->signature = signature_of(*formal_returns, *formal_parameters);
  const auto return_places = lay_out(*formal_returns);
  const auto places = lay_out(*formal_parameters, return_places.size);
  for (std::size_t k = 0; k < formal_parameters->size() && ok_; ++k) {
    transfer t;
    const auto& o = arguments->parts[k];
    const auto& formal = (*formal_parameters)[k];
    pass(o, formal, formal_returns->size() + k, places.offsets[k], t);
    if (ok_ && t.caller_register) t.caller = source(o, formal.kind);
    site->in.push_back(t);
  }
  for (std::size_t k = 0; k < formal_returns->size() && ok_; ++k) {
    transfer t;
    const auto& o = returns->parts[k];
    const auto& formal = (*formal_returns)[k];
    pass(o, formal, k, return_places.offsets[k], t);
    if (ok_ && t.caller_register) t.caller = target(o, formal.kind);
    site->out.push_back(t);
  }
  if (!ok_) return;
  inst& i = emit(control().call);
  i.imm = reinterpret_cast<std::int64_t>(site.get());
  out_.calls.push_back(std::move(site));
}

void decoder::do_return() {
  take("uni");
  emit(f_.kernel ? control().exit : control().ret);
}

void decoder::do_exit() { emit(control().exit); }
void decoder::do_trap() { emit(now_->name == "trap" ? control().trap : control().breakpoint); }

void decoder::do_nanosleep() {
  take_type();
  emit(control().nanosleep);
}

/// r: result, barrier, threads, predicate. aux: 1 = has a thread count; 2, 4, 6 = popc, and, or.
void decoder::do_barrier() {
  if (take("cluster")) return do_cluster_barrier();
  take("cta"), take("aligned");
  if (take("warp")) {
    if (!take("sync")) return fail("expected .sync");
    count(1);
    const auto member = source(at(0), type::u32);
    emit(control().warp_barrier).r[5] = member;
    return;
  }
  const bool arrive = take("arrive"), red = take("red");
  if (!arrive && !red && !take("sync")) return fail("expected .sync, .arrive or .red");
  std::uint32_t kind = 0;
  std::size_t n = 0;
  std::uint32_t d = 0, p = 0;
  if (red) {
    kind = take("popc") ? 2 : take("and") ? 4 : take("or") ? 6 : 0;
    if (kind == 0) return fail("unsupported reduction");
    take("pred"), take("u32");
    count(3, 4);
    d = kind == 2 ? target(at(0), type::u32) : target_predicate(at(0));
    p = source_predicate(at(now_->operands.size() - 1));
    n = 1;
  } else {
    count(arrive ? 2 : 1, 2);
  }
  const auto number = source(at(n++), type::u32);
  const bool counted = n + (red ? 1 : 0) < now_->operands.size();
  const auto threads = counted ? source(at(n), type::u32) : 0;
  inst& i = emit(arrive ? control().arrive : control().barrier);
  i.r[0] = d, i.r[1] = number, i.r[2] = threads, i.r[3] = p, i.aux = kind | (counted ? 1 : 0);
}

void decoder::do_shuffle() {
  const bool sync = take("sync");
  const std::uint32_t kind = take("idx") ? 0 : take("up") ? 1 : take("down") ? 2 : take("bfly") ? 3 : 4;
  if (kind == 4) return fail("expected .idx, .up, .down or .bfly");
  const type t = take_type();
  count(sync ? 5 : 4);
  if (size_of(t) != 4) return fail("unsupported type");
  const operand& d = at(0);
  if (!ok_) return;
  const bool both = d.kind == operand_kind::pair;
  const auto to = target(both ? d.parts[0] : d, t), p = both ? target_predicate(d.parts[1]) : 0;
  const auto a = source(at(1), t), b = source(at(2), type::u32), c = source(at(3), type::u32);
  std::uint32_t member = 0;
  if (sync) {
    member = source(at(4), type::u32);
  } else {
    member = temporary(4);
    emit(steps().active_mask).r[0] = member;
  }
  inst& i = emit(steps().shuffle[2]);
  i.r[0] = to, i.r[1] = p, i.r[2] = a, i.r[3] = b, i.r[4] = c, i.r[5] = member,
  i.aux = kind | (both ? 256 : 0);
}

void decoder::do_vote() {
  const bool sync = take("sync");
  const std::uint32_t kind = take("all") ? 0 : take("any") ? 1 : take("uni") ? 2 : take("ballot") ? 3 : 4;
  if (kind == 4) return fail("unsupported vote");
  const type t = take_type();
  count(sync ? 3 : 2);
  if (!ok_) return;
  if ((t == type::pred) == (kind == 3)) return fail("unsupported type");
  const auto d = target(at(0), t), p = source_predicate(at(1));
  std::uint32_t member = 0;
  if (sync) {
    member = source(at(2), type::u32);
  } else {
    member = temporary(4);
    emit(steps().active_mask).r[0] = member;
  }
  inst& i = emit(steps().vote);
  i.r[0] = d, i.r[2] = p, i.r[5] = member, i.aux = kind;
}

void decoder::do_match() {
  const bool all = take("all");
  if (!all && !take("any")) return fail("expected .any or .all");
  if (!take("sync")) return fail("expected .sync");
  const type t = take_type();
  count(3);
  if (!ok_) return;
  const operand& d = at(0);
  const bool both = d.kind == operand_kind::pair;
  const auto to = target(both ? d.parts[0] : d, type::u32), p = both ? target_predicate(d.parts[1]) : 0;
  const auto a = source(at(1), t), member = source(at(2), type::u32);
  const int log2 = size_of(t) == 8 ? 3 : 2;
  inst& i = emit(all ? steps().match_all[log2] : steps().match_any[log2]);
  i.r[0] = to, i.r[1] = p, i.r[2] = a, i.r[5] = member, i.aux = both ? 256 : 0;
}

void decoder::do_redux() {
  if (!take("sync")) return fail("expected .sync");
  static constexpr std::pair<std::string_view, atom> kinds[] = {{"add", atom::add}, {"min", atom::min},
                                                                {"max", atom::max}, {"and", atom::and_},
                                                                {"or", atom::or_},  {"xor", atom::xor_}};
  atom kind = atom::count;
  for (const auto& [name, k] : kinds) {
    if (kind == atom::count && take(name)) kind = k;
  }
  const type t = take_type();
  count(3);
  if (kind == atom::count || size_of(t) != 4 || is_float(t)) return fail("unsupported operation");
  const auto d = target(at(0), t), a = source(at(1), t), member = source(at(2), type::u32);
  inst& i = emit(steps().reduce[static_cast<int>(kind)][static_cast<int>(element_of(t))]);
  i.r[0] = d, i.r[2] = a, i.r[5] = member;
}

void decoder::do_activemask() {
  take_type();
  count(1);
  const auto d = target(at(0), type::u32);
  emit(steps().active_mask).r[0] = d;
}

/// Instructions that may suspend the warp or leave the straight line: a false guard jumps around them, since
/// the mask of a guarded step would be lost.
bool decoder::may_leave(std::string_view name) {
  static constexpr std::string_view list[] = {"ret",      "exit",      "call",      "bar",   "barrier",
                                              "shfl",     "vote",      "match",     "redux", "trap",
                                              "brkpt",    "nanosleep", "brx",       "mma",   "wmma",
                                              "ldmatrix", "stmatrix",  "movmatrix", "elect", "mbarrier"};
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

const std::map<std::string_view, decoder::handler>& decoder::handlers() {  // a table
  using d = decoder;
  static const std::map<std::string_view, handler> all = {
      {"add", &d::do_add_sub},
      {"sub", &d::do_add_sub},
      {"addc", &d::do_add_sub},
      {"subc", &d::do_add_sub},
      {"mul", &d::do_mul},
      {"mad", &d::do_mad},
      {"madc", &d::do_mad},
      {"fma", &d::do_fma},
      {"div", &d::do_div},
      {"rem", &d::do_rem},
      {"min", &d::do_min_max},
      {"max", &d::do_min_max},
      {"neg", &d::do_unary},
      {"abs", &d::do_unary},
      {"not", &d::do_unary},
      {"cnot", &d::do_unary},
      {"brev", &d::do_unary},
      {"popc", &d::do_count},
      {"clz", &d::do_count},
      {"bfind", &d::do_count},
      {"and", &d::do_logic},
      {"or", &d::do_logic},
      {"xor", &d::do_logic},
      {"shl", &d::do_shift},
      {"shr", &d::do_shift},
      {"sqrt", &d::do_math},
      {"rsqrt", &d::do_math},
      {"rcp", &d::do_math},
      {"ex2", &d::do_math},
      {"lg2", &d::do_math},
      {"sin", &d::do_math},
      {"cos", &d::do_math},
      {"tanh", &d::do_math},
      {"bfe", &d::do_bfe},
      {"bfi", &d::do_bfi},
      {"lop3", &d::do_lop3},
      {"prmt", &d::do_prmt},
      {"shf", &d::do_shf},
      {"dp4a", &d::do_dot},
      {"dp2a", &d::do_dot},
      {"szext", &d::do_szext},
      {"fns", &d::do_fns},
      {"vadd", &d::do_video},
      {"vsub", &d::do_video},
      {"vabsdiff", &d::do_video},
      {"vmin", &d::do_video},
      {"vmax", &d::do_video},
      {"vshl", &d::do_video},
      {"vshr", &d::do_video},
      {"vmad", &d::do_video},
      {"vset", &d::do_video},
      {"vadd2", &d::do_video},
      {"vsub2", &d::do_video},
      {"vavrg2", &d::do_video},
      {"vabsdiff2", &d::do_video},
      {"vmin2", &d::do_video},
      {"vmax2", &d::do_video},
      {"vset2", &d::do_video},
      {"vadd4", &d::do_video},
      {"vsub4", &d::do_video},
      {"vavrg4", &d::do_video},
      {"vabsdiff4", &d::do_video},
      {"vmin4", &d::do_video},
      {"vmax4", &d::do_video},
      {"vset4", &d::do_video},
      {"mbarrier", &d::do_mbarrier},
      {"cp", &d::do_copy_async},
      {"mapa", &d::do_map_shared},
      {"getctarank", &d::do_cta_rank},
      {"createpolicy", &d::do_policy},
      {"alloca", &d::do_alloca},
      {"stacksave", &d::do_stack},
      {"stackrestore", &d::do_stack},
      {"mma", &d::do_mma},
      {"wmma", &d::do_wmma},
      {"ldmatrix", &d::do_rows},
      {"stmatrix", &d::do_rows},
      {"movmatrix", &d::do_movmatrix},
      {"elect", &d::do_elect},
      {"wgmma", &d::refuse_by_name},
      {"tcgen05", &d::refuse_by_name},
      {"multimem", &d::refuse_by_name},
      {"tensormap", &d::refuse_by_name},
      {"clusterlaunchcontrol", &d::refuse_by_name},
      {"mul24", &d::do_mul24},
      {"mad24", &d::do_mul24},
      {"sad", &d::do_sad},
      {"bmsk", &d::do_bmsk},
      {"copysign", &d::do_copysign},
      {"testp", &d::do_testp},
      {"setp", &d::do_setp},
      {"set", &d::do_set},
      {"selp", &d::do_selp},
      {"slct", &d::do_slct},
      {"mov", &d::do_mov},
      {"cvt", &d::do_cvt},
      {"cvta", &d::do_cvta},
      {"isspacep", &d::do_isspacep},
      {"ld", &d::do_load},
      {"ldu", &d::do_load},
      {"st", &d::do_store},
      {"atom", &d::do_atom},
      {"red", &d::do_atom},
      {"membar", &d::do_fence},
      {"fence", &d::do_fence},
      {"prefetch", &d::do_nothing},
      {"prefetchu", &d::do_nothing},
      {"pmevent", &d::do_nothing},
      {"applypriority", &d::do_nothing},
      {"discard", &d::do_nothing},
      {"griddepcontrol", &d::do_nothing},
      {"setmaxnreg", &d::do_nothing},
      {"bra", &d::do_branch},
      {"brx", &d::do_branch_indexed},
      {"call", &d::do_call},
      {"ret", &d::do_return},
      {"exit", &d::do_exit},
      {"trap", &d::do_trap},
      {"brkpt", &d::do_trap},
      {"bar", &d::do_barrier},
      {"barrier", &d::do_barrier},
      {"shfl", &d::do_shuffle},
      {"vote", &d::do_vote},
      {"match", &d::do_match},
      {"redux", &d::do_redux},
      {"tex", &d::do_tex},
      {"tld4", &d::do_tld4},
      {"txq", &d::do_texture_query},
      {"suq", &d::do_texture_query},
      {"suld", &d::do_surface_load},
      {"sust", &d::do_surface_store},
      {"sured", &d::do_surface_reduce},
      {"activemask", &d::do_activemask},
      {"nanosleep", &d::do_nanosleep},
  };
  return all;
}

}  // namespace outboard::ptx
