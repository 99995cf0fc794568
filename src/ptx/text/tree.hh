// The syntax tree of one module as the parser leaves it. Names are resolved inside functions (registers,
// labels, local variables are indices); module-level names are resolved by link and decode. Views point into
// program::text. Immutable after parsing, any thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/text/types.hh"

namespace outboard::ptx {

enum class linkage : std::uint8_t { internal, external, visible, weak, common };

/// `size` bytes at `offset` of an initial value hold the address of `symbol` + addend.
struct relocation {
  std::uint64_t offset = 0;
  std::uint32_t size = 8;
  std::uint32_t shift = 0;  ///< 0xff00(symbol) takes bits 8..15
  std::string_view symbol;
  std::int64_t addend = 0;
};

struct variable {
  std::string_view name;
  ptx::space where = space::global;
  ptx::linkage link = linkage::internal;
  ptx::type kind = type::none;
  bool managed = false;
  std::uint32_t align = 1;
  std::uint64_t size = 0;  ///< 0: extern array without bound (dynamic shared memory)
  std::string initial;     ///< shorter than size: the rest is zero
  std::vector<relocation> relocations;
  std::uint32_t line = 0;
  int reg = -1;  ///< of a function parameter in space::reg: its register
};

enum class operand_kind : std::uint8_t {
  none,
  reg,      ///< index = register
  integer,  ///< value
  real,     ///< value = bits of a float or double, see `single`
  special,  ///< name = %tid.x, WARP_SZ
  symbol,   ///< name (module level), value = addend
  local,    ///< index = variable of this function, value = addend
  label,    ///< index = instruction
  address,  ///< [base + value]: base kind in `base`, index/name as for that kind; parts: what follows a comma
  list,     ///< {a, b} or (a, b): parts
  pair,     ///< a|b: parts
  sink,     ///< _
};

struct operand {
  operand_kind kind = operand_kind::none;
  operand_kind base = operand_kind::none;
  bool negated = false, single = false;
  std::int32_t index = -1;
  std::int64_t value = 0;
  std::string_view name;
  std::string_view selector;  ///< of a register: b0 h1 b3210, behind the dot
  std::vector<operand> parts;
};

struct instruction {
  std::string_view name;                    ///< the first part of the opcode: add
  std::vector<std::string_view> modifiers;  ///< lo s32
  std::int32_t guard = -1;                  ///< register of @p
  bool guard_negated = false;
  std::vector<operand> operands;
  std::uint32_t line = 0;
  std::string_view text;  ///< as written, without guard and semicolon
};

struct register_range {
  ptx::type kind = type::none;
  std::int32_t first = 0, count = 0;
};

struct prototype {
  std::vector<variable> returns, parameters;
};

struct function {
  std::string_view name;
  bool kernel = false, defined = false, noreturn = false;
  ptx::linkage link = linkage::internal;
  std::vector<variable> returns, parameters;
  /// What operands of kind `local` index: copies of the returns, then of the parameters, then what the body
  /// declares
  /// (.shared, .local, .param of call sites).
  std::vector<variable> variables;
  std::vector<register_range> registers;
  std::int32_t register_count = 0;
  std::vector<instruction> body;
  std::map<std::string_view, prototype> prototypes;  ///< .callprototype labels
  std::map<std::string_view, std::vector<std::int32_t>>
      branch_tables;                       ///< .branchtargets labels -> instructions
  std::uint32_t max_block[3] = {0, 0, 0};  ///< .maxntid
  std::uint32_t required_block[3] = {0, 0, 0};
  std::uint32_t max_registers = 0, min_blocks = 0;
  std::uint32_t line = 0;
  int target = 0;  ///< of the text it stands in: linked texts may differ

  ptx::type register_type(std::int32_t index) const;
};

struct program {
  std::shared_ptr<const std::string> text;
  std::vector<std::shared_ptr<const std::string>> more_texts;  ///< of linked modules
  int version = 0, target = 0;
  std::vector<variable> variables;
  std::deque<function> functions;
  std::map<std::string_view, std::string_view> aliases;

  const function* find_function(std::string_view name) const;
  const variable* find_variable(std::string_view name) const;
};

}  // namespace outboard::ptx
