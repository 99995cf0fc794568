#include "base/retired_addresses.hh"

#include <sys/mman.h>

namespace outboard {
namespace {

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

retired_addresses::~retired_addresses() { make_room(0, ~std::uint64_t{0}); }

void retired_addresses::retire(std::uint64_t begin, std::uint64_t size) {
  if (size == 0) return;
  constexpr int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(pointer(begin), size, PROT_NONE, kind, -1, 0) == MAP_FAILED) {
    // The process has too many mappings: better no protection than memory that stays.
    ::munmap(pointer(begin), size);
  } else {
    ranges_.add(begin, size);
  }
}

void retired_addresses::make_room(std::uint64_t begin, std::uint64_t size) {
  const std::uint64_t end = size > ~begin ? ~std::uint64_t{0} : begin + size;
  while (const auto piece = ranges_.first_within(begin, end)) {
    ranges_.take_at(piece->first, piece->second);
    ::munmap(pointer(piece->first), piece->second);
  }
}

std::optional<std::uint64_t> retired_addresses::take(std::uint64_t size, std::uint64_t alignment) {
  return ranges_.take(size, alignment);
}

}  // namespace outboard
