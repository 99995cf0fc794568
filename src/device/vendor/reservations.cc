#include "device/vendor/reservations.hh"

#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace outboard::device::vendor {
namespace {

std::uint64_t first = 0;
std::atomic<std::uint64_t> next{0};  ///< 0: nothing is placed
std::uint64_t driver_begin = 0, driver_end = 0;

/// The part of the address space that a library takes, if `function` is in it.
int find_library(dl_phdr_info* library, std::size_t, void* function) {
  const auto wanted = reinterpret_cast<std::uint64_t>(function);
  std::uint64_t begin = ~0ull, end = 0;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = library->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uint64_t at = library->dlpi_addr + part.p_vaddr;
    begin = at < begin ? at : begin;
    end = at + part.p_memsz > end ? at + part.p_memsz : end;
  }
  if (wanted < begin || wanted >= end) return 0;
  driver_begin = begin, driver_end = end;
  return 1;
}

}  // namespace

void reserve_from(std::uint64_t address) {
  first = address;
  next.store(0, std::memory_order_release);
}

void detail::reserve_for(const void* function) {
  if (first == 0) return;
  ::dl_iterate_phdr(find_library, const_cast<void*>(function));
  next.store(first, std::memory_order_release);
}

}  // namespace outboard::device::vendor

// Sanitizers have an mmap() of their own, which has to stay the only one.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define OUTBOARD_SANITIZED
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define OUTBOARD_SANITIZED
#endif
#endif
#if defined(__LP64__) && !defined(OUTBOARD_SANITIZED)

namespace outboard::device::vendor {
namespace {

void* map(void* at, std::size_t size, int protection, int flags, int file, off_t offset) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, size, protection, flags, file, offset));
}

constexpr std::uint64_t granule = 2u << 20;

/// Room for a device's addresses is asked for with no right to any of it.
bool is_reservation(const void* at, std::size_t size, int protection, int flags) {
  return at == nullptr && size >= granule && protection == PROT_NONE && (flags & MAP_ANONYMOUS) != 0 &&
         (flags & MAP_FIXED) == 0;
}

}  // namespace

/// The C library's mmap(), as everything in this process finds it that does not bring its own.
void* map_for(const void* caller, void* at, std::size_t size, int protection, int flags, int file,
              off_t offset) {
  const auto from = reinterpret_cast<std::uint64_t>(caller);
  if (next.load(std::memory_order_acquire) == 0 || from < driver_begin || from >= driver_end ||
      !is_reservation(at, size, protection, flags))
    return map(at, size, protection, flags, file, offset);
  const std::uint64_t wanted = next.fetch_add((size + granule - 1) / granule * granule);
  void* const placed =
      map(reinterpret_cast<void*>(wanted), size, protection, flags | MAP_FIXED_NOREPLACE, file, offset);
  // Something is there already: anywhere is better than nowhere.
  return placed != MAP_FAILED ? placed : map(at, size, protection, flags, file, offset);
}

}  // namespace outboard::device::vendor

extern "C" {
[[gnu::visibility("default")]] void* mmap(void* at, size_t size, int protection, int flags, int file,
                                          off_t offset) noexcept {
  return outboard::device::vendor::map_for(__builtin_return_address(0), at, size, protection, flags, file,
                                           offset);
}
[[gnu::visibility("default")]] void* mmap64(void* at, size_t size, int protection, int flags, int file,
                                            off64_t offset) noexcept {
  return outboard::device::vendor::map_for(__builtin_return_address(0), at, size, protection, flags, file,
                                           offset);
}
}
#endif
