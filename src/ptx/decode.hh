// One function of the syntax tree to steps. A decoder lives for one function, on one thread. Operands are in
// decode_operands.cc, the families of instructions in decode_arithmetic.cc, decode_convert.cc,
// decode_memory.cc and decode_control.cc; whatever is not understood to the last modifier is refused with
// line and statement.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/code.hh"
#include "ptx/warp.hh"

namespace outboard::ptx {

struct decode_context {
  const program& tree;
  code& functions;
  const shared_layout& shared;
  const variable_addresses& addresses;
  std::map<std::string_view, const variable*> variables;
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
  type take_type();
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
  void after_result(op o, element e, std::uint32_t d) { alu(o, e, d, {d}); }
  static element element_of(type t);    ///< untyped bits count as unsigned
  static element bits_element(type t);  ///< unsigned of the same size

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

  bool wide_integer(op& lo);
  op comparison();
  void compare_into(std::uint32_t p, std::uint32_t q, bool with_q, const operand* combine, mix how, op o,
                    type t, bool ftz);
  struct place {
    where window = where::generic;
    std::uint32_t address = 0;
    std::int64_t offset = 0;
    bool kernel_parameter = false;
  };
  space take_space();
  void take_cache_hints();
  place locate(const operand& o, space s);
  void memory_operands(const operand& o, std::uint32_t lanes, std::vector<const operand*>& out);
  void convert_step(type to, type from, std::uint32_t d, std::uint32_t a, int mode, bool saturate);
  void pass(const operand& o, const variable& formal, std::size_t position, std::uint32_t offset,
            transfer& t);

  static const std::map<std::string_view, handler>& handlers();
  static bool may_leave(std::string_view name);

  decode_context& context_;
  function_code& out_;
  const function& f_;
  bool ok_ = true;
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
