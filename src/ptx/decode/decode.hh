// One function of the syntax tree to steps. A decoder lives for one function, on one thread. Operands are in
// decode_operands.cc, the families of instructions in decode_arithmetic.cc, decode_convert.cc,
// decode_memory.cc, decode_texture.cc and decode_control.cc; whatever is not understood to the last modifier
// is refused with line and statement.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/run/code.hh"
#include "ptx/run/fragments.hh"
#include "ptx/run/plain.hh"
#include "ptx/run/plain_integer.hh"
#include "ptx/run/warp.hh"

namespace outboard::ptx {

struct narrow_form;   // plain_convert.hh
struct texture_site;  // texture_steps.hh

struct decode_context {
  const program& tree;
  code& functions;
  const shared_layout& shared;
  const variable_addresses& addresses;
  std::map<std::string_view, const variable*> variables;
  std::size_t most_refused = 20;
  bool open = false;  ///< a part of what will be linked: what it declares .extern may be missing
  std::vector<std::string> refused;  ///< a line of text for each statement that cannot be run
};

/// Bytes of an element in a register: 8-bit values are kept in 16.
inline std::uint32_t register_bytes(type t) { return size_of(t) == 1 ? 2 : size_of(t); }

class decoder {
 public:
  using handler = void (decoder::*)();

  decoder(decode_context& context, function_code& out);
  status run();

 private:
  // ---- bookkeeping (decode.cc)
  void fail(const std::string& why);
  void unresolved(const std::string& name);  ///< declared .extern, and nobody defines it
  void statement(std::size_t number);
  void pre_layout();
  void patch_branches();
  void finish_constants();
  inst& emit(step run, const char* what = "instruction");
  std::uint32_t slot(std::int32_t reg);
  std::uint32_t allocate(std::uint32_t element_bytes);
  std::uint32_t temporary(std::uint32_t element_bytes);  ///< until the end of the statement; 0 = predicate
  std::uint32_t constant(std::uint64_t bits, std::uint32_t element_bytes);
  std::uint32_t predicate_constant(bool value);
  std::uint32_t carry();

  // ---- modifiers
  bool take(std::string_view modifier);
  bool take_prefix(std::string_view prefix);
  bool has(std::string_view modifier) const;
  type take_type(bool wide = false);  ///< wide: b128 is understood
  cell take_cell();
  int take_rounding();  ///< 0 nearest, 1 zero, 2 down, 3 up
  void all_taken();

  // ---- operands (decode_operands.cc)
  const operand& at(std::size_t n);
  void count(std::size_t least, std::size_t most);
  void count(std::size_t exactly) { count(exactly, exactly); }
  std::uint32_t source(const operand& o, type t);
  std::uint32_t source_predicate(const operand& o);
  std::uint32_t target(const operand& o, type t);  ///< adds what must follow to after_
  std::uint32_t target_predicate(const operand& o);
  std::uint32_t resize(std::uint32_t reference, std::uint32_t from, std::uint32_t to, bool sign);
  std::uint32_t address_value(const operand& o, std::uint32_t bytes);
  std::uint32_t special_value(std::string_view name, std::uint32_t& bytes);
  std::uint64_t immediate(const operand& o, type t);
  const variable* module_variable(std::string_view name);

  // ---- emission helpers
  void alu(op o, element e, std::uint32_t d, std::initializer_list<std::uint32_t> sources);
  void rounded(int mode, op o, element e, std::uint32_t d, std::initializer_list<std::uint32_t> sources);
  std::uint32_t flushed(std::uint32_t reference, type t, bool ftz);
  /// The same for halves only: f32 has operations of its own for .ftz.
  std::uint32_t flushed_half(std::uint32_t reference, type t, bool ftz) {
    return t == type::f32 ? reference : flushed(reference, t, ftz);
  }
  void flush_result(type t, std::uint32_t d, bool ftz);
  void after_result(op o, element e, std::uint32_t d) { alu(o, e, d, {d}); }
  static element element_of(type t);    ///< untyped bits count as unsigned
  static element bits_element(type t);  ///< unsigned of the same size

  /// A plain step (plain.hh) with registers, and one whose inst::imm points to a new T.
  inst& plain(step s, std::uint32_t d, std::initializer_list<std::uint32_t> sources, std::uint32_t aux = 0);
  template <class T>
  T& detail(step s) {
    auto made = std::make_shared<T>();
    emit(s).imm = reinterpret_cast<std::int64_t>(made.get());
    out_.details.push_back(made);
    return *made;
  }

  struct located : place {
    bool kernel_parameter = false;
  };

  // ---- families
  void do_add_sub();
  void do_mul();
  void do_mad();
  void do_fma();
  void do_div();
  void do_rem();
  void do_min_max();
  void do_unary();
  void do_count();
  void do_logic();
  void do_shift();
  void do_math();
  void do_bfe();
  void do_bfi();
  void do_lop3();
  void do_prmt();
  void do_shf();
  void do_dot();
  void do_mul24();
  void do_sad();
  void do_bmsk();
  void do_copysign();
  void do_testp();
  void do_setp();
  void do_set();
  void do_selp();
  void do_slct();
  void do_mov();
  void do_cvt();
  op take_integral_rounding();  ///< of .rni, .rzi, .rmi, .rpi; op::count when there is none
  /// cvt of two values to f16x2 or bf16x2, in roundings that halves have steps for.
  void convert_to_pair(type to, type from, int mode, bool sat, bool relu);
  void move_wide();
  void do_cvta();
  void do_isspacep();
  void do_load();
  void do_store();
  void do_atom();
  void do_fence();
  void do_nothing();
  void do_branch();
  void do_branch_indexed();
  void do_call();
  /// The function that a call names; `site` gets its code or the builtin for it. Null: refused.
  const function* direct_callee(std::string_view name, call_site& site);
  void do_return();
  void do_exit();
  void do_trap();
  void do_barrier();
  void do_shuffle();
  void do_vote();
  void do_match();
  void do_redux();
  void do_activemask();
  void do_nanosleep();
  // decode_video.cc
  void do_video();
  void do_szext();
  void do_fns();
  void do_pair16();
  // decode_narrow.cc
  void do_cvt_narrow();
  void convert_to_packed(narrow_form form, type from);  ///< cvt to two numbers of the format in `form`
  /// cvt to one half with the rarer roundings of `form`, or from integers, without rounding twice.
  void convert_to_half(narrow_form form, type to, type from, bool sat, bool ftz);
  void do_cvt_pack();
  bool narrow_conversion() const;
  // decode_atomic.cc
  void do_atom_wide(const located& p, std::size_t first);
  void do_atom_plain(const located& p, atom a, type t, std::uint32_t lanes, bool returns, std::size_t first);
  void wide_access(bool store, type t, std::uint32_t lanes, const std::vector<const operand*>& values,
                   const located& p);
  // decode_async.cc
  void do_mbarrier();
  void mbarrier_test(bool patient);
  void do_copy_async();
  void do_copy_bulk(bool reduces);
  void do_async_store(bool reduces);
  void do_cluster_barrier();
  void do_map_shared();
  void do_cta_rank();
  void do_policy();
  void do_alloca();
  void do_stack();
  // decode_matrix.cc
  void do_mma();
  void do_wmma();
  void wmma_multiply();
  void multiply_registers(multiply_step& all);
  void wmma_move(bool store);
  void do_rows();
  void do_movmatrix();
  void do_elect();
  void fragment_registers(const operand& o, fragment& f, bool target_registers);
  fragment make(const matrix_shape& s, operand_of which, cell kind, bool wmma);
  void refuse_by_name();
  // decode_texture.cc
  void do_tex();
  void do_tld4();
  void do_texture_query();
  void take_surface_shape(texture_site& site);
  static const operand& unwrapped(const operand& o);
  void surface_values(const operand& o, const texture_site& site, std::vector<const operand*>& out);
  void do_surface_load();
  void do_surface_store();
  void do_surface_reduce();

  bool wide_integer(op& lo);
  void compare_pairs(std::uint32_t p, std::uint32_t q, op o, type t, bool ftz);
  op comparison();
  void compare_into(std::uint32_t p, std::uint32_t q, bool with_q, const operand* combine, mix how, op o,
                    type t, bool ftz);
  space take_space();
  void take_cache_hints();
  located locate(const operand& o, space s);
  void memory_operands(const operand& o, std::uint32_t lanes, std::vector<const operand*>& out);
  void convert_step(type to, type from, std::uint32_t d, std::uint32_t a, int mode, bool saturate);
  void pass(const operand& o, const variable& formal, std::size_t position, std::uint32_t offset,
            transfer& t);

  // ---- textures (decode_texture.cc)
  bool take_geometry(texture_site& site);
  void take_outside_rule(texture_site& site);
  void texture_place(const operand& o, texture_site& site, type t);
  void texture_gradient(const operand& o, texture_site& site, std::size_t which);
  void texture_target(const operand& o, texture_site& site, type t);
  void emit_texture(std::unique_ptr<texture_site> site);

  static const std::map<std::string_view, handler>& handlers();
  static bool may_leave(std::string_view name);

  decode_context& context_;
  function_code& out_;
  const function& f_;
  bool ok_ = true, missing_ = false;  ///< missing: the failure is a symbol that a part may leave open
  std::string message_;
  const instruction* now_ = nullptr;
  std::size_t number_ = 0;
  std::vector<bool> taken_;
  std::vector<inst> after_;
  std::vector<std::uint32_t> slots_;
  std::uint32_t register_top_ = 0;
  std::map<std::uint32_t, std::pair<std::vector<std::uint32_t>, std::size_t>> temporaries_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> constants_;
  std::vector<std::uint64_t> constant_words_;  // repeated over lanes, 64-byte groups
  std::uint32_t carry_ = 0;
  std::vector<std::uint32_t> starts_;                           // first step of each statement
  std::vector<std::pair<std::size_t, std::int32_t>> branches_;  // step, statement it leads to
};

}  // namespace outboard::ptx
