// Pools that several processes have: all memory of one is in a file, which each process maps whole. The maker
// allocates; the others only get blocks of it by name.
#include <fcntl.h>

#include <cstring>
#include <new>

#include "base/random.hh"
#include "base/sealed_file.hh"
#include "device/cpu/memory/pool.hh"

namespace outboard::device::cpu {
namespace {

/// As the arena of device memory: far from where programs have their own, because clients hold these too.
constexpr std::uint64_t quiet = 0x5000'0000'0000;

struct pointer_name {
  std::array<char, 8> mark{'o', 'b', 'p', 'o', 'o', 'l', 'p', '1'};
  std::uint64_t offset = 0, size = 0;
  std::array<std::uint8_t, 16> key{};
  std::array<std::uint8_t, 24> zeros{};
};
static_assert(sizeof(pointer_name) == sizeof(CUmemPoolPtrExportData));

}  // namespace

bool pool::share() {
  const std::uint64_t size = store_.total() + memory::granularity;
  file_ = make_shared_file(size, "outboard-shared-pool");
  if (!file_) return false;
  mapping_ = shared_mapping::of(file_.get(), size, quiet);
  if (mapping_.begin() == 0) return false;
  auto* fresh = new (&head()) pool_file_head;
  fill_random(std::as_writable_bytes(std::span(fresh->key)));
  // Chunks begin at whole granules of the file; the first is the head's.
  room_.add(mapping_.begin() + memory::granularity, size - memory::granularity);
  return true;
}

bool pool::import(int fd) {
  const auto size = size_of_sealed_file(fd);
  if (!size || *size < 2 * memory::granularity) return false;
  file_ = unique_fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!file_) return false;
  mapping_ = shared_mapping::of(file_.get(), *size, quiet);
  return imported_ = mapping_.begin() != 0;
}

CUresult pool::export_to(unique_fd& out) const {
  if (!file_ || imported_) return CUDA_ERROR_INVALID_VALUE;
  out = unique_fd(::fcntl(file_.get(), F_DUPFD_CLOEXEC, 0));
  return out ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult pool::export_pointer(std::uint64_t address, CUmemPoolPtrExportData& out) const {
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(address);
  if (!file_ || imported_ || block == blocks_.end()) return CUDA_ERROR_INVALID_VALUE;
  pointer_name n;
  n.offset = address - mapping_.begin();
  n.size = block->second;
  n.key = head().key;
  std::memcpy(&out, &n, sizeof out);
  return CUDA_SUCCESS;
}

CUresult pool::import_pointer(const CUmemPoolPtrExportData& from, std::uint64_t owner, std::uint64_t& out) {
  const std::lock_guard lock(mutex_);
  pointer_name n;
  std::memcpy(static_cast<void*>(&n), &from, sizeof n);
  if (!imported_ || n.mark != pointer_name{}.mark || n.zeros != pointer_name{}.zeros || n.key != head().key)
    return CUDA_ERROR_INVALID_VALUE;
  if (n.offset < memory::granularity || n.offset >= mapping_.size() || n.size == 0 ||
      n.size > mapping_.size() - n.offset) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  out = mapping_.begin() + n.offset;
  if (blocks_.contains(out)) return CUDA_SUCCESS;  // the same pointer again, as the driver
  store_.place({.begin = out, .size = n.size, .kind = memory_kind::pooled, .owner = owner, .pool = id_});
  blocks_[out] = n.size;
  used_ += n.size;
  return CUDA_SUCCESS;
}

CUresult pool::take_chunk(std::uint64_t size, std::uint64_t& out) {
  if (mapping_.begin() == 0) return store_.take_granules(size, out);
  if (!store_.charge(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = room_.take(size, memory::alignment);
  if (!begin) return store_.discharge(size), CUDA_ERROR_OUT_OF_MEMORY;
  return out = *begin, CUDA_SUCCESS;
}

void pool::give_back_chunk(std::uint64_t address, std::uint64_t size) {
  if (mapping_.begin() == 0) return store_.give_back_granules(address, size);
  room_.add(address, size);
  store_.discharge(size);
}

bool pool::displace(std::uint64_t address, std::uint64_t block_id) {
  if (mapping_.begin() == 0) return store_.displace(address, block_id);
  return store_.displace_shared(address, block_id, !imported_);
}

}  // namespace outboard::device::cpu
