#include "frontend/opencl/transfer/map_room.hh"

#include <sys/mman.h>

#include <atomic>

#include "base/machine_memory.hh"
#include "frontend/opencl/link.hh"

namespace outboard::frontend::opencl {
namespace {

std::atomic<std::uint64_t> taken{0};

}  // namespace

std::unique_ptr<map_room> map_room::take(std::uint64_t size) {
  if (size > quarter_of_memory()) return nullptr;
  const auto whole = static_cast<std::size_t>(page_up(size));
  if (taken.fetch_add(whole) > quarter_of_memory() - size) return taken.fetch_sub(whole), nullptr;
  void* const at = ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return taken.fetch_sub(whole), nullptr;
  ::madvise(at, whole, MADV_HUGEPAGE);  // fewer faults, where it can be had
  return std::unique_ptr<map_room>(
      new map_room(static_cast<std::byte*>(at), whole, link::instance().server()));
}

/// Bytes of a map that nobody has waited for may still come: then the memory is nobody's for good.
map_room::~map_room() {
  taken.fetch_sub(size_);
  if (server_ && server_->copies_pending_to({data_, size_})) return;
  ::munmap(data_, size_);
}

}  // namespace outboard::frontend::opencl
