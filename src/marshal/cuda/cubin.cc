// parse_cubin: kernels and variables of one cubin. What the attribute numbers of .nv.info mean was found by
// compiling known kernels for sm_75, sm_90 and sm_100 and checked against a driver's cuFuncGetAttribute.
#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <unordered_map>

#include "marshal/cuda/cubin_elf.hh"
#include "marshal/cuda/image_fatbin.hh"
#include "marshal/cuda/kernel_table.hh"

namespace outboard::marshal {
namespace {

constexpr std::uint32_t section_nv_info = 0x70000000;
constexpr std::uint8_t other_entry = 0x10, other_managed = 0x04;
// From sm_90 on a kernel's section of shared memory starts with what the system takes for itself.
constexpr std::uint64_t reserved_bytes = 1024;
constexpr std::uint32_t max_parameter_bytes = 1 << 16;  // CUDA's limit is 32764

enum attribute : std::uint8_t {
  max_block = 0x05,         // u32[3], from maxntid
  required_block = 0x10,    // u32[3]
  frame_size = 0x11,        // u32 symbol, u32 bytes; in .nv.info of the module
  minimum_stack = 0x12,     // the same
  parameter = 0x17,         // u32 0, u16 ordinal, u16 offset, u32 with the size from bit 18 up
  parameter_total = 0x19,   // u16 in the item head
  register_count = 0x2f,    // u32 symbol, u32 registers; in .nv.info of the module
  required_cluster = 0x3d,  // u32[3]
  explicit_cluster = 0x3e,  // no value
  max_cluster_rank = 0x3f,  // u32
  parameter_wide = 0x45,    // u32 0, u16 ordinal, u16 offset, u32 size: some parameter exceeds 16 KB
};

struct info_item {
  std::uint8_t id;
  std::uint16_t small;               // the value of items without bytes of their own
  std::span<const std::byte> bytes;  // format 4
};

/// Calls `each(item)` for the items of one .nv.info section; false when they do not fit into it.
template <class Each>
bool for_each_item(std::span<const std::byte> section, Each each) {
  constexpr std::uint8_t format_sized = 4;
  while (section.size() >= 4) {
    const auto format = load<std::uint8_t>(section, 0);
    info_item item{load<std::uint8_t>(section, 1), load<std::uint16_t>(section, 2), {}};
    section = section.subspan(4);
    if (format == format_sized) {
      if (item.small > section.size()) return false;
      item.bytes = section.first(item.small);
      section = section.subspan(item.small);
    } else if (format == 0 || format > format_sized) {
      return false;
    }
    each(item);
  }
  return section.empty();
}

void read_three(const info_item& item, std::int32_t (&to)[3]) {
  if (item.bytes.size() < 12) return;
  for (int n = 0; n < 3; ++n)
    to[n] = static_cast<std::int32_t>(load<std::uint32_t>(item.bytes, 4 * n) & 0xffff);
}

struct numbered_parameter {
  std::uint16_t ordinal;
  kernel_parameter place;
};

/// The layout is known only if the ordinals are 0..n-1 and everything lies within the total.
void settle_parameters(kernel_info& kernel, std::vector<numbered_parameter>& found, std::uint32_t total) {
  std::sort(found.begin(), found.end(), [](auto& a, auto& b) { return a.ordinal < b.ordinal; });
  for (std::size_t n = 0; n < found.size(); ++n) {
    const auto& p = found[n];
    if (p.ordinal != n || p.place.size > max_parameter_bytes || p.place.offset + p.place.size > total) return;
    if (n > 0 && p.place.offset < found[n - 1].place.offset + found[n - 1].place.size) return;
  }
  for (const auto& p : found) kernel.parameters.push_back(p.place);
  kernel.parameter_bytes = total;
  kernel.layout_known = true;
}

void read_kernel_info(std::span<const std::byte> section, kernel_info& kernel) {
  std::vector<numbered_parameter> parameters;
  std::uint32_t total = 0;
  std::int32_t block[3] = {};
  const bool sound = for_each_item(section, [&](const info_item& item) {
    switch (item.id) {
      case parameter:
      case parameter_wide: {
        if (item.bytes.size() < 12) break;
        const auto last = load<std::uint32_t>(item.bytes, 8);
        parameters.push_back(
            {load<std::uint16_t>(item.bytes, 4),
             {load<std::uint16_t>(item.bytes, 6), item.id == parameter ? last >> 18 : last}});
        break;
      }
      case parameter_total:
        total = item.small;
        break;
      case max_block:
        read_three(item, block);
        break;
      case required_block:
        read_three(item, kernel.required_block);
        break;
      case required_cluster:
        read_three(item, kernel.required_cluster);
        break;
      case explicit_cluster:
        kernel.explicit_cluster = true;
        break;
      case max_cluster_rank:
        if (item.bytes.size() >= 4)
          kernel.max_cluster_rank = static_cast<std::int32_t>(load<std::uint32_t>(item.bytes, 0) & 0xffff);
        break;
      default:
        break;
    }
  });
  if (!sound) return;
  settle_parameters(kernel, parameters, total);
  // A driver reports reqntid as a requirement, not as this bound.
  const std::int64_t threads = std::int64_t{block[0]} * block[1] * block[2];
  if (threads > 0 && threads <= 1024) kernel.max_threads = static_cast<std::int32_t>(threads);
}

/// A block has 65536 registers (sm_75 and later); warps get them in units of 256, and come in fours.
void bound_by_registers(kernel_info& kernel) {
  if (kernel.registers <= 64) return;  // 1024 threads fit
  const std::int64_t warp = (std::int64_t{kernel.registers} * 32 + 255) / 256 * 256;
  const auto threads = static_cast<std::int32_t>(65536 / warp / 4 * 4 * 32);
  if (threads > 0 && (kernel.max_threads < 0 || threads < kernel.max_threads)) kernel.max_threads = threads;
}

struct versions {
  std::int32_t binary = -1, virtual_arch = -1;
};

/// CUDA 13 writes ABI version 8: the binary's capability in bits 8-15 of the flags, the virtual one in a
/// note. Older ones have both in the flags.
versions versions_of(const cubin_elf& elf) {
  const std::uint32_t flags = elf.flags();
  if (elf.abi_version() < 8)
    return {static_cast<std::int32_t>(flags & 0xff), static_cast<std::int32_t>((flags >> 16) & 0xff)};
  versions v{static_cast<std::int32_t>((flags >> 8) & 0xff), -1};
  if (const elf_section* note = elf.find(".note.nv.cuinfo"); note && note->content.size() >= 32)
    v.virtual_arch = load<std::uint16_t>(note->content, 26);
  return v;
}

using names = std::unordered_map<std::string_view, const elf_section*>;

class cubin_reader {
 public:
  explicit cubin_reader(const cubin_elf& elf) : elf_(elf) {
    for (const elf_section& s : elf_.sections()) {
      if (s.name.starts_with(".nv.info.")) infos_.emplace(s.name.substr(9), &s);
      if (s.name.starts_with(".nv.shared.")) shared_.emplace(s.name.substr(11), &s);
      if (s.name == ".nv.constant3") constant_bytes_ = s.size;
    }
    for (const elf_symbol& s : elf_.symbols()) reserved_shared_ |= s.name == ".nv.reservedSmem.offset0";
  }

  kernel_table read() {
    kernel_table table;
    table.source = kernel_source::cubin;
    kernel_of_symbol_.assign(elf_.symbols().size(), -1);
    const versions version = versions_of(elf_);
    for (std::size_t n = 0; n < elf_.symbols().size(); ++n) {
      const elf_symbol& symbol = elf_.symbols()[n];
      if (symbol.section == 0 || symbol.name.empty()) continue;
      if (symbol.type == STT_FUNC && (symbol.other & other_entry)) {
        kernel_of_symbol_[n] = static_cast<std::int64_t>(table.kernels.size());
        table.kernels.push_back(read_kernel(symbol, version));
      } else if (symbol.type == STT_OBJECT) {
        add_variable(symbol, table);
      }
    }
    read_module_info(table);
    for (kernel_info& kernel : table.kernels) bound_by_registers(kernel);
    sort_table(table);
    return table;
  }

 private:
  kernel_info read_kernel(const elf_symbol& symbol, const versions& version) const {
    kernel_info kernel;
    kernel.name = symbol.name;
    kernel.binary_version = version.binary;
    kernel.ptx_version = version.virtual_arch;
    // Where compilers before CUDA 12 put it; later ones leave zero there and use register_count.
    if (const std::uint32_t registers = elf_.sections()[symbol.section].info >> 24)
      kernel.registers = static_cast<std::int32_t>(registers);
    kernel.constant_bytes = clamp(constant_bytes_);
    kernel.static_shared = 0;
    if (const auto s = shared_.find(symbol.name); s != shared_.end()) {
      const std::uint64_t size = s->second->size;
      kernel.static_shared = clamp(reserved_shared_ && size >= reserved_bytes ? size - reserved_bytes : size);
    }
    if (const auto i = infos_.find(symbol.name); i != infos_.end() && i->second->type == section_nv_info)
      read_kernel_info(i->second->content, kernel);
    return kernel;
  }

  void add_variable(const elf_symbol& symbol, kernel_table& table) const {
    const std::string_view section = elf_.sections()[symbol.section].name;
    variable_info variable{std::string(symbol.name), variable_space::global, symbol.size};
    if (section == ".nv.constant3") {
      variable.space = variable_space::constant;
    } else if (section != ".nv.global" && section != ".nv.global.init") {
      return;
    } else if (symbol.other & other_managed) {
      variable.space = variable_space::managed;
    }
    table.variables.push_back(std::move(variable));
  }

  void read_module_info(kernel_table& table) const {
    const elf_section* info = elf_.find(".nv.info");
    if (!info) return;
    for_each_item(info->content, [&](const info_item& item) {
      if (item.bytes.size() < 8) return;
      const auto symbol = load<std::uint32_t>(item.bytes, 0);
      const auto value = clamp(load<std::uint32_t>(item.bytes, 4));
      if (symbol >= kernel_of_symbol_.size() || kernel_of_symbol_[symbol] < 0) return;
      kernel_info& kernel = table.kernels[static_cast<std::size_t>(kernel_of_symbol_[symbol])];
      if (item.id == register_count) kernel.registers = value;
      if (item.id == minimum_stack) kernel.local_bytes = value;
    });
  }

  static std::int32_t clamp(std::uint64_t value) {
    return static_cast<std::int32_t>(std::min<std::uint64_t>(value, 0x7fffffff));
  }

  const cubin_elf& elf_;
  names infos_, shared_;
  std::uint64_t constant_bytes_ = 0;
  bool reserved_shared_ = false;
  std::vector<std::int64_t> kernel_of_symbol_;
};

}  // namespace

result<kernel_table> parse_cubin(std::span<const std::byte> bytes) {
  const auto elf = cubin_elf::open(bytes);
  if (!elf) return elf.error();
  kernel_table table = cubin_reader(*elf).read();
  // The name under which compilers call the device's printf.
  const auto calls = [&](std::string_view name) {
    return std::ranges::any_of(elf->symbols(), [&](const auto& s) { return s.name == name; });
  };
  table.prints = calls("vprintf");
  table.allocates = calls("malloc");
  return table;
}

}  // namespace outboard::marshal
