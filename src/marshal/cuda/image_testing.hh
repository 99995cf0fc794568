// For tests and fuzz seeds only: small fatbins and cubins made by hand, so that no compiler is needed.
#pragma once

#include <elf.h>
#include <lz4.h>
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outboard::marshal::testing {

using byte_vector = std::vector<std::byte>;

inline byte_vector bytes_of(std::string_view text) {
  const auto raw = std::as_bytes(std::span(text.data(), text.size()));
  return {raw.begin(), raw.end()};
}

/// PTX as it stands in a fatbin: with its NUL.
inline byte_vector ptx_of(std::string_view text) {
  byte_vector bytes = bytes_of(text);
  bytes.push_back(std::byte{0});
  return bytes;
}

template <class T>
void append(byte_vector& to, const T& value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  to.insert(to.end(), raw.begin(), raw.end());
}

inline constexpr std::uint64_t arch_flag = 0x100000, family_flag = 0x200000;

struct entry_spec {
  std::uint16_t kind = 1;  ///< 1 PTX, 2 cubin, 8 LTO
  std::uint32_t capability = 75;
  byte_vector payload;
  char packing = ' ';  ///< 'l' LZ4, 'z' zstd
  std::uint64_t flags = 0;
};

inline byte_vector pack_payload(const entry_spec& e) {
  byte_vector packed;
  const auto* const from = reinterpret_cast<const char*>(e.payload.data());
  if (e.packing == 'l') {
    packed.resize(static_cast<std::size_t>(LZ4_compressBound(static_cast<int>(e.payload.size()))));
    packed.resize(static_cast<std::size_t>(LZ4_compress_default(from, reinterpret_cast<char*>(packed.data()),
                                                                static_cast<int>(e.payload.size()),
                                                                static_cast<int>(packed.size()))));
  } else if (e.packing == 'z') {
    packed.resize(ZSTD_compressBound(e.payload.size()));
    packed.resize(ZSTD_compress(packed.data(), packed.size(), from, e.payload.size(), 3));
  } else {
    packed = e.payload;
  }
  return packed;
}

inline byte_vector make_fatbin(const std::vector<entry_spec>& entries) {
  byte_vector body;
  for (const entry_spec& e : entries) {
    const byte_vector packed = pack_payload(e);
    const std::uint64_t padded = (packed.size() + 7) / 8 * 8;
    append(body, e.kind);
    append(body, std::uint16_t{0x0101});
    append(body, std::uint32_t{64});
    append(body, padded);
    append(body, static_cast<std::uint32_t>(e.packing == ' ' ? 0 : packed.size()));
    append(body, std::uint32_t{0});
    append(body, std::uint16_t{0}), append(body, std::uint16_t{9});
    append(body, e.capability);
    append(body, std::uint64_t{0});
    append(body, e.flags | 0x11 | (e.packing == 'l' ? 0x2000 : e.packing == 'z' ? 0x8000 : 0));
    append(body, std::uint64_t{0});
    append(body, std::uint64_t{e.packing == ' ' ? 0 : e.payload.size()});
    body.insert(body.end(), packed.begin(), packed.end());
    body.resize(body.size() + padded - packed.size());
  }
  byte_vector fatbin;
  append(fatbin, std::uint32_t{0xba55ed50});
  append(fatbin, std::uint16_t{1});
  append(fatbin, std::uint16_t{16});
  append(fatbin, std::uint64_t{body.size()});
  fatbin.insert(fatbin.end(), body.begin(), body.end());
  return fatbin;
}

/// Of a section .nv.info.
inline void append_info_item(byte_vector& to, std::uint8_t format, std::uint8_t id, std::uint16_t value) {
  append(to, format), append(to, id), append(to, value);
}

/// What a cubin says of a kernel that takes (u8, u64, 3 bytes).
inline byte_vector make_kernel_info() {
  byte_vector info;
  const std::uint16_t offsets[] = {0, 8, 16};
  const std::uint32_t sizes[] = {1, 8, 3};
  for (std::uint16_t n = 3; n-- > 0;) {
    append_info_item(info, 4, 0x17, 12);
    append(info, std::uint32_t{0}), append(info, n), append(info, offsets[n]);
    append(info, sizes[n] << 18 | 0x1f000);
  }
  append_info_item(info, 3, 0x19, 19);
  append_info_item(info, 4, 0x05, 12);
  append(info, std::uint32_t{64}), append(info, std::uint32_t{2}), append(info, std::uint32_t{1});
  return info;
}

/// What it says of the kernel by its symbol: registers and stack.
inline byte_vector make_module_info() {
  byte_vector info;
  append_info_item(info, 4, 0x2f, 8);
  append(info, std::uint32_t{1}), append(info, std::uint32_t{24});
  append_info_item(info, 4, 0x12, 8);
  append(info, std::uint32_t{1}), append(info, std::uint32_t{160});
  return info;
}

/// The kernel and the variable `counter`, by the offsets of their names.
inline byte_vector make_symbols(std::uint32_t kernel_name, std::uint32_t counter_name) {
  byte_vector symbols(sizeof(Elf64_Sym));
  enum { text_section = 1, global_section = 2 };
  Elf64_Sym kernel{};
  kernel.st_name = kernel_name;
  kernel.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  kernel.st_other = 0x10;
  kernel.st_shndx = text_section;
  append(symbols, kernel);
  Elf64_Sym counter{};
  counter.st_name = counter_name;
  counter.st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT);
  counter.st_shndx = global_section;
  counter.st_size = 40;
  append(symbols, counter);
  return symbols;
}

struct cubin_section {
  std::string name;
  std::uint32_t type, link;
  byte_vector content;
  std::uint64_t size;
  std::uint32_t name_offset = 0;
};

/// The last section has the names.
inline byte_vector make_elf(std::uint32_t capability, const std::vector<cubin_section>& sections) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64, header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_OSABI] = 0x41, header.e_ident[EI_ABIVERSION] = 8;
  header.e_type = ET_EXEC, header.e_machine = EM_CUDA, header.e_version = 1;
  header.e_flags = capability << 8;
  header.e_ehsize = sizeof header, header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = sizeof header;
  header.e_shnum = static_cast<std::uint16_t>(sections.size());
  header.e_shstrndx = static_cast<std::uint16_t>(sections.size() - 1);
  byte_vector file, contents;
  append(file, header);
  const std::size_t start = sizeof header + sections.size() * sizeof(Elf64_Shdr);
  for (const cubin_section& each : sections) {
    Elf64_Shdr s{};
    s.sh_name = each.name_offset, s.sh_type = each.type, s.sh_link = each.link;
    s.sh_offset = start + contents.size(), s.sh_size = each.size;
    append(file, s);
    contents.insert(contents.end(), each.content.begin(), each.content.end());
  }
  file.insert(file.end(), contents.begin(), contents.end());
  return file;
}

/// A cubin of ABI version 8 with one kernel, `name`, that takes (u8, u64, 3 bytes), 12 bytes of static shared
/// memory, and the variable `counter` of 40 bytes.
inline byte_vector make_cubin(std::uint32_t capability, const std::string& name) {
  std::string names(1, '\0');
  const auto name_of = [&](const std::string& text) {
    const auto at = static_cast<std::uint32_t>(names.size());
    names += text + '\0';
    return at;
  };
  const byte_vector info = make_kernel_info(), module_info = make_module_info();
  const std::uint32_t kernel_name = name_of(name), counter_name = name_of("counter");
  const byte_vector symbols = make_symbols(kernel_name, counter_name);
  std::vector<cubin_section> sections = {{"", SHT_NULL, 0, {}, 0},
                                         {".text." + name, SHT_PROGBITS, 0, byte_vector(16), 16},
                                         {".nv.global", SHT_NOBITS, 0, {}, 40},
                                         {".nv.shared." + name, SHT_NOBITS, 0, {}, 12},
                                         {".nv.info", 0x70000000, 6, module_info, module_info.size()},
                                         {".nv.info." + name, 0x70000000, 6, info, info.size()},
                                         {".symtab", SHT_SYMTAB, 7, symbols, symbols.size()},
                                         {".strtab", SHT_STRTAB, 0, {}, 0}};
  for (cubin_section& s : sections) s.name_offset = s.name.empty() ? 0 : name_of(s.name);
  sections.back().content = bytes_of(names);
  sections.back().size = names.size();
  return make_elf(capability, sections);
}

inline const char* const small_ptx =
    "// made by hand\n.version 8.0\n.target sm_75\n.address_size 64\n"
    ".visible .entry scale(.param .u64 .ptr .align 16 p, .param .f32 f) .maxntid 128, 1, 1 { ret; }\n";

}  // namespace outboard::marshal::testing
