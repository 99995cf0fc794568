#include "device/vendor/elf_symbols.hh"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/errno_text.hh"
#include "base/fd.hh"

namespace outboard::device::vendor {
namespace {

#if defined(__x86_64__)
constexpr Elf64_Half own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half own_machine = EM_AARCH64;
#elif defined(__riscv)
constexpr Elf64_Half own_machine = EM_RISCV;
#endif

/// A file mapped read-only; at<T>() copies out, so nothing depends on alignment.
class mapped_file {
 public:
  mapped_file() = default;
  mapped_file(const char* data, std::size_t size) : data_(data), size_(size) {}
  mapped_file(mapped_file&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  mapped_file& operator=(mapped_file&&) = delete;
  ~mapped_file() {
    if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
  }

  template <class T>
  bool at(std::uint64_t offset, T& out) const {
    if (offset > size_ || sizeof(T) > size_ - offset) return false;
    std::memcpy(&out, data_ + offset, sizeof(T));
    return true;
  }

  /// The NUL-terminated string at `offset`; empty if it runs beyond the file.
  std::string_view text(std::uint64_t offset) const {
    if (offset >= size_) return {};
    const void* end = std::memchr(data_ + offset, 0, size_ - offset);
    if (end == nullptr) return {};
    return {data_ + offset, static_cast<std::size_t>(static_cast<const char*>(end) - (data_ + offset))};
  }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

result<mapped_file> map_file(const std::string& path) {
  unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (fd.get() < 0 || ::fstat(fd.get(), &about) != 0) return failure(path + ": " + errno_text(errno));
  if (!S_ISREG(about.st_mode) || about.st_size == 0) return failure(path + ": not a file with contents");
  const auto size = static_cast<std::size_t>(about.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) return failure(path + ": " + errno_text(errno));
  return mapped_file(static_cast<const char*>(data), size);
}

bool section_exports(const mapped_file& file, const Elf64_Shdr& symbols, const Elf64_Shdr& strings,
                     std::string_view wanted) {
  for (std::uint64_t i = 0; i < symbols.sh_size / sizeof(Elf64_Sym); ++i) {
    Elf64_Sym symbol;
    if (!file.at(symbols.sh_offset + i * sizeof symbol, symbol)) return false;
    if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= strings.sh_size) continue;
    if (file.text(strings.sh_offset + symbol.st_name) == wanted) return true;
  }
  return false;
}

}  // namespace

result<elf_answer> elf_exports(const std::string& path, const std::string& symbol) {
  auto mapped = map_file(path);
  if (!mapped) return mapped.error();
  const mapped_file& file = *mapped;
  Elf64_Ehdr header;
  if (!file.at(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return failure(path + ": not an ELF library");
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != own_machine) return elf_answer::foreign;
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section, strings;
    if (!file.at(header.e_shoff + std::uint64_t{i} * sizeof section, section)) break;
    if (section.sh_type != SHT_DYNSYM) continue;
    if (!file.at(header.e_shoff + std::uint64_t{section.sh_link} * sizeof strings, strings)) break;
    if (section_exports(file, section, strings, symbol)) return elf_answer::exports;
  }
  return elf_answer::absent;
}

}  // namespace outboard::device::vendor
