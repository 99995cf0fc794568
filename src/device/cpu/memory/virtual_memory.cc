// The virtual memory side of memory: reserved address ranges, physical allocations (parts of one sparse
// memory file, so that one may appear at several addresses and keeps its bytes while unmapped), mappings and
// their access.
#include <fcntl.h>
#include <sys/mman.h>

#include "base/sealed_file.hh"
#include "device/cpu/memory/memory.hh"
#include "device/cpu/memory/shared_file.hh"
#include "device/cpu/shown_use.hh"

namespace outboard::device::cpu {
namespace {

constexpr int reserve_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
bool whole(std::uint64_t value) { return value % memory::granularity == 0; }

/// Exactly there, or nothing: kernels before 4.17 take MAP_FIXED_NOREPLACE for a mere hint.
std::uint64_t reserve_at(std::uint64_t address, std::uint64_t size) {
  void* got = ::mmap(pointer(address), size, PROT_NONE, reserve_flags | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == MAP_FAILED) return 0;
  if (got == pointer(address)) return address;
  ::munmap(got, size);
  return 0;
}

std::uint64_t reserve_anywhere(std::uint64_t size, std::uint64_t align) {
  void* got = ::mmap(nullptr, size + align, PROT_NONE, reserve_flags, -1, 0);
  if (got == MAP_FAILED) return 0;
  const auto start = reinterpret_cast<std::uint64_t>(got);
  const std::uint64_t aligned = (start + align - 1) & ~(align - 1);
  if (aligned != start) ::munmap(got, aligned - start);
  ::munmap(pointer(aligned + size), start + align - aligned);
  return aligned;
}

}  // namespace

CUresult memory::reserve(std::uint64_t size, std::uint64_t align, std::uint64_t hint, std::uint64_t& out) {
  constexpr std::uint64_t most = std::uint64_t{1} << 47;
  if (size == 0 || !whole(size) || (align & (align - 1)) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (size >= most || align >= most) return CUDA_ERROR_OUT_OF_MEMORY;
  std::uint64_t got = 0;
  // An address that is taken or odd is only a hint, as with the driver.
  if (hint != 0 && whole(hint)) got = reserve_at(hint, size);
  if (got == 0) got = reserve_anywhere(size, std::max(align, granularity));
  if (got == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(mutex_);
  reservations_[got] = size;
  out = got;
  return CUDA_SUCCESS;
}

CUresult memory::unreserve(std::uint64_t address, std::uint64_t size) {
  {
    std::lock_guard lock(mutex_);
    const auto range = reservations_.find(address);
    if (range == reservations_.end() || range->second != size || !free_in_regions(address, size)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    reservations_.erase(range);
  }
  wait_for_flights();
  ::munmap(pointer(address), size);
  return CUDA_SUCCESS;
}

bool memory::in_reservation(std::uint64_t address, std::uint64_t size) const {
  auto range = reservations_.upper_bound(address);
  if (range == reservations_.begin()) return false;
  --range;
  return size <= range->second && address - range->first <= range->second - size;
}

CUresult memory::create_physical(std::uint64_t size, const CUmemAllocationProp& properties,
                                 std::uint64_t& out) {
  if (size == 0 || !whole(size)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(mutex_);
  if (size > total_ - used_) return CUDA_ERROR_OUT_OF_MEMORY;
  physical made{.size = size, .properties = properties};
  if ((properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0) {
    made.own = make_shared_file(size, "outboard-shareable-memory");
  }
  // Where descriptors are short, memory is still there; it cannot be exported then.
  if (!made.own) {
    const auto offset = offsets_.take(size, granularity);
    if (!offset) return CUDA_ERROR_OUT_OF_MEMORY;
    made.offset = *offset;
  }
  show_used_bytes(used_ += size);
  out = ++last_physical_ << 4 | 0xc;  // never 0, 1, 2; never an address
  physicals_.emplace(out, std::move(made));
  return CUDA_SUCCESS;
}

void memory::drop_physical(std::map<std::uint64_t, physical>::iterator at) {
  const physical& p = at->second;
  if (p.handles + p.mappings > 0) return;
  if (!p.own) {
    // A hole reads as zeros: the next owner finds nothing of this one.
    CHECK(::fallocate(backing_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      static_cast<off_t>(p.offset), static_cast<off_t>(p.size)) == 0);
    offsets_.add(p.offset, p.size);
  }
  if (!p.imported) show_used_bytes(used_ -= p.size);
  physicals_.erase(at);
}

CUresult memory::release_physical(std::uint64_t handle) {
  std::lock_guard lock(mutex_);
  const auto found = physicals_.find(handle);
  if (found == physicals_.end() || found->second.handles == 0) return CUDA_ERROR_INVALID_VALUE;
  --found->second.handles;
  drop_physical(found);
  return CUDA_SUCCESS;
}

CUresult memory::retain_physical(std::uint64_t address, std::uint64_t& out) {
  std::lock_guard lock(mutex_);
  const auto block = at(address);
  if (block == regions_.end() || block->second.kind != memory_kind::mapped) return CUDA_ERROR_INVALID_VALUE;
  out = block->second.physical;
  ++physicals_.at(out).handles;
  return CUDA_SUCCESS;
}

CUresult memory::physical_properties(std::uint64_t handle, CUmemAllocationProp& out) const {
  std::shared_lock lock(mutex_);
  const auto found = physicals_.find(handle);
  if (found == physicals_.end()) return CUDA_ERROR_INVALID_VALUE;
  out = found->second.properties;
  return CUDA_SUCCESS;
}

CUresult memory::export_physical(std::uint64_t handle, unique_fd& out) const {
  std::shared_lock lock(mutex_);
  const auto found = physicals_.find(handle);
  if (found == physicals_.end() || found->second.handles == 0) return CUDA_ERROR_INVALID_VALUE;
  const physical& p = found->second;
  if ((p.properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (!p.own) return CUDA_ERROR_OUT_OF_MEMORY;  // descriptors were short
  out = unique_fd(::fcntl(p.own.get(), F_DUPFD_CLOEXEC, 0));
  return out ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult memory::import_physical(int fd, std::uint64_t& out) {
  physical made{.imported = true};
  const auto size = size_of_sealed_file(fd);
  if (!size || !whole(*size)) return CUDA_ERROR_UNKNOWN;  // as the driver says of a stranger's descriptor
  made.size = *size;
  made.own = unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!made.own) return CUDA_ERROR_OPERATING_SYSTEM;
  made.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  made.properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  std::lock_guard lock(mutex_);
  out = ++last_physical_ << 4 | 0xc;
  physicals_.emplace(out, std::move(made));
  return CUDA_SUCCESS;
}

CUresult memory::map(std::uint64_t address, std::uint64_t size, std::uint64_t offset, std::uint64_t handle) {
  if (size == 0 || !whole(size) || !whole(address) || !whole(offset)) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard lock(mutex_);
  const auto found = physicals_.find(handle);
  if (found == physicals_.end()) return CUDA_ERROR_INVALID_VALUE;
  if (size > found->second.size) return CUDA_ERROR_NOT_SUPPORTED;  // as a 580 driver says it
  if (offset > found->second.size - size || !in_reservation(address, size) ||
      !free_in_regions(address, size)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const physical& p = found->second;
  void* got = ::mmap(pointer(address), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                     p.own ? p.own.get() : backing_.get(), static_cast<off_t>(p.offset + offset));
  if (got == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  ++found->second.mappings;
  regions_[address] = {.begin = address,
                       .size = size,
                       .kind = memory_kind::mapped,
                       .id = ++last_id_,
                       .readable = false,
                       .writable = false,
                       .physical = handle};
  return CUDA_SUCCESS;
}

CUresult memory::unmap(std::uint64_t address, std::uint64_t size) {
  std::lock_guard lock(mutex_);
  const std::uint64_t end = address + size;
  // First look, then act: a bad range changes nothing.
  std::uint64_t next = address;
  for (auto block = regions_.find(address); next < end; ++block) {
    if (block == regions_.end() || block->first != next || block->second.kind != memory_kind::mapped ||
        block->second.size > end - next) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    next += block->second.size;
  }
  bool flying = false;
  {
    std::lock_guard flights(flight_mutex_);
    flying = !flights_.empty();
  }
  const int protection =
      flying ? PROT_READ | PROT_WRITE : PROT_NONE;  // scratch pages while a kernel may know them
  CHECK(::mmap(pointer(address), size, protection, reserve_flags | MAP_FIXED, -1, 0) != MAP_FAILED);
  for (auto block = regions_.find(address); block != regions_.end() && block->first < end;) {
    const auto found = physicals_.find(block->second.physical);
    --found->second.mappings;
    drop_physical(found);
    block = regions_.erase(block);
  }
  return CUDA_SUCCESS;
}

CUresult memory::set_access(std::uint64_t address, std::uint64_t size, CUmemAccess_flags flags) {
  std::lock_guard lock(mutex_);
  const std::uint64_t end = address + size;
  std::uint64_t next = address;
  for (auto block = regions_.find(address); next < end; ++block) {
    if (block == regions_.end() || block->first != next || block->second.kind != memory_kind::mapped ||
        block->second.size > end - next) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    next += block->second.size;
  }
  for (auto block = regions_.find(address); block != regions_.end() && block->first < end; ++block) {
    block->second.readable = flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    block->second.writable = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return CUDA_SUCCESS;
}

CUresult memory::get_access(std::uint64_t address, CUmemAccess_flags& out) const {
  std::shared_lock lock(mutex_);
  const auto block = at(address);
  if (block == regions_.end() || block->second.kind != memory_kind::mapped) return CUDA_ERROR_INVALID_VALUE;
  out = block->second.writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        : block->second.readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                 : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace outboard::device::cpu
