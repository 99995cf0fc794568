// Inside of marshal's image code: a cubin as an ELF file, every offset checked. Views into the bytes, which
// must outlive it; one thread at a time (string look-ups draw on a budget).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hh"

namespace outboard::marshal {

struct elf_section {
  std::string_view name;
  std::uint32_t type = 0, link = 0, info = 0;
  std::uint64_t size = 0;              ///< what the header says (shared memory has no bytes)
  std::span<const std::byte> content;  ///< empty when the section has no bytes in the file
};

struct elf_symbol {
  std::string_view name;
  std::uint8_t type = 0, other = 0;
  std::uint32_t section = 0;  ///< 0: undefined here
  std::uint64_t size = 0;
};

class cubin_elf {
 public:
  static result<cubin_elf> open(std::span<const std::byte> bytes);

  std::uint32_t flags() const { return flags_; }
  std::uint8_t abi_version() const { return abi_version_; }
  const std::vector<elf_section>& sections() const { return sections_; }
  const std::vector<elf_symbol>& symbols() const { return symbols_; }
  const elf_section* find(std::string_view name) const;

 private:
  result<std::string_view> text(std::span<const std::byte> strings, std::uint64_t offset);
  status read_sections(std::span<const std::byte> bytes);
  status read_symbols();

  std::uint32_t flags_ = 0;
  std::uint8_t abi_version_ = 0;
  // Many names may lead to one long string; without a budget a small file costs hours.
  std::uint64_t text_budget_ = 0;
  std::vector<elf_section> sections_;
  std::vector<elf_symbol> symbols_;
};

}  // namespace outboard::marshal
