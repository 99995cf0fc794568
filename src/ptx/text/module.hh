// A parsed PTX module: what a loader must know (kernels, parameter layouts, variables) without any address
// yet. Immutable after parse() or link(), held by shared_ptr, read from any thread. The text may be a
// stranger's: depth, counts and sizes are limited, and every error says the line and shows the statement, so
// it can serve as JIT log.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"

namespace outboard::ptx {

struct program;  // syntax tree, internal to src/ptx

struct parameter_info {
  std::string name;
  std::uint32_t offset = 0, size = 0, align = 1;
};

struct kernel_info {
  std::string name;
  std::vector<parameter_info> parameters;
  std::uint32_t parameter_bytes = 0;              ///< end of the last parameter, not rounded
  std::uint32_t static_shared_bytes = 0;          ///< including that of the functions it may call
  std::uint32_t local_bytes = 0;                  ///< per thread, stack of the deepest call chain
  std::uint32_t constant_bytes = 0;               ///< of the module
  std::uint32_t registers = 0;                    ///< estimate of what ptxas would take, 16..255
  std::uint32_t max_threads = 1024;               ///< per block: .maxntid / .reqntid, else 1024
  std::array<std::uint32_t, 3> required_block{};  ///< .reqntid, zeros when absent
  std::uint32_t min_blocks = 0;                   ///< .minnctapersm
  int target = 0;                                 ///< of its own text: 75 for .target sm_75
};

enum class variable_space { global, constant };

struct variable_info {
  std::string name;
  variable_space space = variable_space::global;
  std::uint64_t size = 0;
  std::uint32_t align = 1;
  bool managed = false;
  bool is_static =
      false;  ///< no .visible/.weak: other modules cannot see it; the driver's cuModuleGetGlobal does
};

class module {
 public:
  module(std::unique_ptr<const program> tree, std::vector<kernel_info> kernels,
         std::vector<variable_info> variables);
  ~module();
  module(const module&) = delete;
  module& operator=(const module&) = delete;

  std::span<const kernel_info> kernels() const { return kernels_; }
  std::span<const variable_info> variables() const { return variables_; }  ///< defined ones, no .extern
  const kernel_info* find_kernel(std::string_view name) const;
  const variable_info* find_variable(std::string_view name) const;
  bool uses_heap() const;   ///< malloc or free of the device is called
  int ptx_version() const;  ///< 90 for .version 9.0
  const program& tree() const { return *tree_; }

 private:
  std::unique_ptr<const program> tree_;
  std::vector<kernel_info> kernels_;
  std::vector<variable_info> variables_;
};

using module_ptr = std::shared_ptr<const module>;

/// Compute capabilities (90 for 9.0) that PTX 9.0 has a .target for.
bool is_target(int capability);

/// Parses and checks one text. Unknown instructions, types and directives are errors; unresolved .extern
/// symbols are not yet (see link and instantiate).
result<module_ptr> parse(std::string_view text);

/// Joins several modules: .extern declarations meet their definitions, .weak ones yield to a strong or to the
/// first; two strong definitions of a name are an error. What remains undefined is an error of instantiate,
/// except the functions the device itself provides (vprintf, __assertfail, malloc, free).
result<module_ptr> link(std::span<const module_ptr> modules);

}  // namespace outboard::ptx
