#include "marshal/cuda/cubin_elf.hh"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "marshal/cuda/image_fatbin.hh"

namespace outboard::marshal {
namespace {

// cuBLAS's largest cubins have some ten thousand.
constexpr std::uint64_t max_sections = 1 << 22;

status check_identity(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Elf64_Ehdr) || std::memcmp(bytes.data(), ELFMAG, SELFMAG) != 0)
    return failure("no ELF file");
  const auto header = load<Elf64_Ehdr>(bytes, 0);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
    return failure("the ELF file is not 64-bit little-endian");
  if (header.e_machine != EM_CUDA)
    return failure("the ELF file is for machine " + std::to_string(header.e_machine) + ", not for CUDA");
  if (header.e_shoff != 0 && header.e_shentsize != sizeof(Elf64_Shdr))
    return failure("ELF section headers of " + std::to_string(header.e_shentsize) + " bytes");
  if (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr))
    return failure("ELF program headers of " + std::to_string(header.e_phentsize) + " bytes");
  return {};
}

/// Memory that the device makes: a size, no bytes in the file. ptxas of CUDA 12 and before has its own types
/// for global (7), local (9) and shared memory (10); .nv_debug.shared still has.
bool without_bytes(std::uint32_t type) {
  return type == SHT_NULL || type == SHT_NOBITS || type == 0x70000007 || type == 0x70000009 ||
         type == 0x7000000a;
}

bool inside(std::uint64_t offset, std::uint64_t size, std::uint64_t all) {
  return offset <= all && size <= all - offset;
}

struct section_table {
  std::uint64_t offset = 0, count = 0;
  std::uint32_t names = 0;
};

/// Counts above 65279 stand in the first section header.
result<section_table> locate_sections(std::span<const std::byte> bytes) {
  const auto header = load<Elf64_Ehdr>(bytes, 0);
  section_table table{header.e_shoff, header.e_shnum, header.e_shstrndx};
  if (table.offset == 0) return section_table{};
  if (!inside(table.offset, sizeof(Elf64_Shdr), bytes.size()))
    return failure("ELF section headers lie outside");
  const auto first = load<Elf64_Shdr>(bytes, table.offset);
  if (table.count == 0) table.count = first.sh_size;
  if (table.names == SHN_XINDEX) table.names = first.sh_link;
  if (table.count > max_sections || !inside(table.offset, table.count * sizeof(Elf64_Shdr), bytes.size()))
    return failure("ELF file with " + std::to_string(table.count) + " section headers, which lie outside");
  return table;
}

}  // namespace

result<std::uint64_t> cubin_extent(std::span<const std::byte> bytes) {
  OUTBOARD_TRY(check_identity(bytes));
  const auto header = load<Elf64_Ehdr>(bytes, 0);
  const auto table = locate_sections(bytes);
  if (!table) return table.error();
  std::uint64_t end =
      std::max<std::uint64_t>(sizeof header, table->offset + table->count * sizeof(Elf64_Shdr));
  for (std::uint64_t n = 0; n < table->count; ++n) {
    const auto section = load<Elf64_Shdr>(bytes, table->offset + n * sizeof(Elf64_Shdr));
    if (without_bytes(section.sh_type)) continue;
    if (!inside(section.sh_offset, section.sh_size, bytes.size()))
      return failure("ELF section " + std::to_string(n) + " lies outside of the file");
    end = std::max(end, section.sh_offset + section.sh_size);
  }
  if (header.e_phnum == 0) return end;
  if (!inside(header.e_phoff, header.e_phnum * sizeof(Elf64_Phdr), bytes.size()))
    return failure("ELF program headers lie outside");
  end = std::max<std::uint64_t>(end, header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr));
  for (std::uint64_t n = 0; n < header.e_phnum; ++n) {
    const auto segment = load<Elf64_Phdr>(bytes, header.e_phoff + n * sizeof(Elf64_Phdr));
    if (!inside(segment.p_offset, segment.p_filesz, bytes.size()))
      return failure("ELF segment " + std::to_string(n) + " lies outside of the file");
    end = std::max(end, segment.p_offset + segment.p_filesz);
  }
  return end;
}

result<cubin_elf> cubin_elf::open(std::span<const std::byte> bytes) {
  OUTBOARD_TRY(check_identity(bytes));
  cubin_elf elf;
  elf.flags_ = load<Elf64_Ehdr>(bytes, 0).e_flags;
  elf.abi_version_ = load<Elf64_Ehdr>(bytes, 0).e_ident[EI_ABIVERSION];
  elf.text_budget_ = 4 * bytes.size();  // each string is named about twice: by a section and by a symbol
  OUTBOARD_TRY(elf.read_sections(bytes));
  OUTBOARD_TRY(elf.read_symbols());
  return elf;
}

result<std::string_view> cubin_elf::text(std::span<const std::byte> strings, std::uint64_t offset) {
  if (offset == 0) return std::string_view();
  if (offset >= strings.size()) return failure("ELF name lies outside of its table");
  const auto* const start = reinterpret_cast<const char*>(strings.data()) + offset;
  const std::size_t most =
      static_cast<std::size_t>(std::min<std::uint64_t>(strings.size() - offset, text_budget_));
  const auto* const end = static_cast<const char*>(std::memchr(start, 0, most));
  if (!end) return failure("ELF names without an end, or too many of them");
  const auto length = static_cast<std::size_t>(end - start);
  text_budget_ -= length;
  return std::string_view(start, length);
}

status cubin_elf::read_sections(std::span<const std::byte> bytes) {
  const auto table = locate_sections(bytes);
  if (!table) return table.error();
  const auto at = [&](std::uint64_t n) {
    return load<Elf64_Shdr>(bytes, table->offset + n * sizeof(Elf64_Shdr));
  };
  const auto content = [&](const Elf64_Shdr& s) -> result<std::span<const std::byte>> {
    if (without_bytes(s.sh_type)) return std::span<const std::byte>();
    if (!inside(s.sh_offset, s.sh_size, bytes.size())) return failure("ELF section lies outside of the file");
    return bytes.subspan(static_cast<std::size_t>(s.sh_offset), static_cast<std::size_t>(s.sh_size));
  };
  std::span<const std::byte> names;
  if (table->names < table->count) {
    const auto found = content(at(table->names));
    if (!found) return found.error();
    names = *found;
  }
  sections_.reserve(static_cast<std::size_t>(table->count));
  for (std::uint64_t n = 0; n < table->count; ++n) {
    const auto header = at(n);
    auto bytes_of = content(header);
    if (!bytes_of) return std::move(bytes_of).error();
    auto name = text(names, n == 0 ? 0 : header.sh_name);
    if (!name) return std::move(name).error();
    sections_.push_back({*name, header.sh_type, header.sh_link, header.sh_info, header.sh_size, *bytes_of});
  }
  return {};
}

status cubin_elf::read_symbols() {
  const auto table = std::find_if(sections_.begin(), sections_.end(),
                                  [](const elf_section& s) { return s.type == SHT_SYMTAB; });
  if (table == sections_.end()) return {};
  if (table->link >= sections_.size()) return failure("ELF symbols without names");
  const auto names = sections_[table->link].content;
  std::span<const std::byte> far_sections;  // section numbers that do not fit into the symbol
  for (const elf_section& s : sections_)
    if (s.type == SHT_SYMTAB_SHNDX) far_sections = s.content;
  const std::size_t count = table->content.size() / sizeof(Elf64_Sym);
  symbols_.reserve(count);
  for (std::size_t n = 0; n < count; ++n) {
    const auto raw = load<Elf64_Sym>(table->content, n * sizeof(Elf64_Sym));
    elf_symbol symbol;
    symbol.type = ELF64_ST_TYPE(raw.st_info);
    symbol.other = raw.st_other;
    symbol.size = raw.st_size;
    symbol.section = raw.st_shndx;
    if (raw.st_shndx == SHN_XINDEX) {
      if (far_sections.size() / 4 <= n) return failure("ELF symbol without a section number");
      symbol.section = load<std::uint32_t>(far_sections, n * 4);
    } else if (raw.st_shndx >= SHN_LORESERVE) {
      symbol.section = 0;
    }
    if (symbol.section >= sections_.size()) symbol.section = 0;
    if (symbol.type == STT_FUNC || symbol.type == STT_OBJECT || symbol.type == STT_LOPROC) {
      auto name = text(names, raw.st_name);
      if (!name) return std::move(name).error();
      symbol.name = *name;
    }
    symbols_.push_back(symbol);
  }
  return {};
}

const elf_section* cubin_elf::find(std::string_view name) const {
  for (const elf_section& s : sections_)
    if (s.name == name) return &s;
  return nullptr;
}

}  // namespace outboard::marshal
