// What can be known of a module without loading it: kernels with the layout of their parameters and their
// attributes, global variables. Read from the cubin a device of the target's capability would take, else from
// its PTX. Asking the driver instead would force loading. The input is hostile on the back-end. Values; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"
#include "marshal/cuda/image.hh"

namespace outboard::marshal {

struct kernel_parameter {
  std::uint32_t offset = 0, size = 0;
  friend bool operator==(const kernel_parameter&, const kernel_parameter&) = default;
};

/// -1 is "not known without loading": registers, constant and local bytes when the source is PTX.
struct kernel_info {
  std::string name;
  bool layout_known = false;  ///< else ask the device (cuKernelGetParamInfo)
  std::vector<kernel_parameter> parameters;
  std::uint32_t parameter_bytes = 0;      ///< end of the last parameter
  std::int32_t max_threads = -1;          ///< MAX_THREADS_PER_BLOCK (maxntid, registers); -1: the device's
  std::int32_t static_shared = -1;        ///< SHARED_SIZE_BYTES
  std::int32_t constant_bytes = -1;       ///< CONST_SIZE_BYTES: user constants of the module
  std::int32_t local_bytes = -1;          ///< LOCAL_SIZE_BYTES
  std::int32_t registers = -1;            ///< NUM_REGS
  std::int32_t ptx_version = -1;          ///< capability x 10, as attribute 5 counts
  std::int32_t binary_version = -1;       ///< attribute 6
  std::int32_t required_block[3] = {};    ///< reqntid, 0: none
  std::int32_t required_cluster[3] = {};  ///< reqnctapercluster, 0: none
  std::int32_t max_cluster_rank = 0;      ///< maxclusterrank, 0: none
  bool explicit_cluster = false;          ///< needs a cluster launch
};

enum class variable_space : std::uint8_t { global = 0, constant = 1, managed = 2 };

struct variable_info {
  std::string name;
  variable_space space = variable_space::global;
  std::uint64_t size = 0;
};

enum class kernel_source : std::uint8_t { none = 0, cubin = 1, ptx = 2 };

struct kernel_table {
  kernel_source source = kernel_source::none;
  std::vector<kernel_info> kernels;      ///< sorted by name
  std::vector<variable_info> variables;  ///< sorted by name
  bool prints = true;                    ///< calls printf, as far as is known; does not travel
  bool allocates = true;                 ///< the same of malloc

  const kernel_info* find_kernel(std::string_view name) const;
  const variable_info* find_variable(std::string_view name) const;
};

result<kernel_table> parse_kernels(const image_view& image, const image_target& target);

/// One cubin, one PTX text: the parts of the above.
result<kernel_table> parse_cubin(std::span<const std::byte> elf);
result<kernel_table> parse_ptx(std::string_view text);

/// By name, the first of equals kept: what find_kernel and find_variable rely on. The parsers have done it.
void sort_table(kernel_table& table);

/// Wire form; decode takes hostile bytes and bounds what it allocates by the bytes there are.
std::vector<std::byte> encode(const kernel_table& table);
result<kernel_table> decode_kernel_table(std::span<const std::byte> bytes);

}  // namespace outboard::marshal
