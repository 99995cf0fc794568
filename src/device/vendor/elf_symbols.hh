// Reads from a file which symbols a shared library exports, so that the library can be judged before its
// constructors run. Free functions, any thread. The file is untrusted: every offset is checked against its
// size.
#pragma once

#include <string>

#include "base/result.hh"

namespace outboard::device::vendor {

enum class elf_answer {
  exports,  ///< the dynamic symbol table defines the symbol
  absent,   ///< the dynamic symbol table does not define it
  foreign,  ///< a library of another architecture or word size
};

/// Error: the file cannot be read or is not an ELF shared library.
result<elf_answer> elf_exports(const std::string& path, const std::string& symbol);

}  // namespace outboard::device::vendor
