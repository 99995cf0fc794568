#include "device/cpu/memory/memory.hh"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "base/errno_text.hh"
#include "device/cpu/shown_use.hh"

namespace outboard::device::cpu {
namespace {

constexpr std::uint64_t page = 4096;
// cuMemAlloc of up to this shares granules, as the driver does.
constexpr std::uint64_t small_limit = 1u << 20;
// Below this much, clearing costs less than giving pages back and faulting them in again.
constexpr std::uint64_t clear_limit = 64u << 10;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }
std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

/// Makes a part of the arena zero again; whole pages go back to the system.
void clear(std::uint64_t begin, std::uint64_t size) {
  const std::uint64_t first = round_up(begin, page), last = (begin + size) / page * page;
  if (size < clear_limit || first >= last) {
    std::memset(pointer(begin), 0, size);
    return;
  }
  std::memset(pointer(begin), 0, first - begin);
  std::memset(pointer(last), 0, begin + size - last);
  CHECK(::madvise(pointer(first), last - first, MADV_DONTNEED) == 0);
}

}  // namespace

result<std::unique_ptr<memory>> memory::create(std::uint64_t total) {
  std::unique_ptr<memory> made(new memory(total / granularity * granularity));
  // Twice the memory, so that holes between blocks do not make a fitting request fail; addresses cost
  // nothing.
  made->arena_size_ = 2 * made->total_ + granularity;
  // A wish only: far from where programs have their code, heap and libraries, because clients of a back-end
  // hold these addresses too and must not have memory of their own there.
  void* const quiet = reinterpret_cast<void*>(0x4000'0000'0000);
  void* arena = ::mmap(quiet, made->arena_size_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) {
    return failure("cannot reserve " + std::to_string(made->arena_size_) +
                   " bytes of addresses for device memory: " + errno_text(errno));
  }
  made->arena_begin_ = reinterpret_cast<std::uint64_t>(arena);
  made->arena_.add(round_up(made->arena_begin_, granularity), 2 * made->total_);
  made->backing_ = unique_fd(::memfd_create("outboard-device-memory", MFD_CLOEXEC));
  constexpr std::uint64_t backing_size = std::uint64_t{1} << 46;
  if (made->backing_.get() < 0 || ::ftruncate(made->backing_.get(), backing_size) != 0) {
    return failure("cannot make the file behind device memory: " + errno_text(errno));
  }
  made->offsets_.add(0, backing_size);
  return made;
}

memory::~memory() {
  for (const auto& [begin, block] : regions_) {
    if (block.kind == memory_kind::host) ::munmap(pointer(begin), round_up(block.size, page));
  }
  for (const auto& [begin, size] : reservations_) ::munmap(pointer(begin), size);
  if (arena_begin_ != 0) ::munmap(pointer(arena_begin_), arena_size_);
}

memory::regions::const_iterator memory::at(std::uint64_t address) const {
  auto block = regions_.upper_bound(address);
  if (block == regions_.begin()) return regions_.end();
  --block;
  return address - block->first < block->second.size ? block : regions_.end();
}

bool memory::find(std::uint64_t address, ptx::memory_range& out) const {
  std::shared_lock lock(mutex_);
  const auto block = at(address);
  if (block == regions_.end() || !block->second.readable) return false;
  out = {block->first, block->second.size, block->second.writable};
  return true;
}

bool memory::nearest(std::uint64_t address, ptx::memory_range& out) const {
  std::shared_lock lock(mutex_);
  if (regions_.empty()) return false;
  const auto after = regions_.upper_bound(address);
  auto best = after;
  if (after != regions_.begin()) {
    const auto before = std::prev(after);
    const std::uint64_t end = before->first + before->second.size;
    if (after == regions_.end() || address < end || address - end <= after->first - address) best = before;
  }
  out = {best->first, best->second.size, best->second.writable};
  return true;
}

std::optional<region> memory::lookup(std::uint64_t address) const {
  std::shared_lock lock(mutex_);
  const auto block = at(address);
  if (block == regions_.end()) return std::nullopt;
  return block->second;
}

bool memory::accessible(std::uint64_t address, std::uint64_t size, bool write) const {
  if (size > ~address) return false;  // the sum does not fit
  std::shared_lock lock(mutex_);
  auto block = at(address);
  const std::uint64_t end = address + size;
  while (address < end) {
    if (block == regions_.end() || block->first > address) return false;
    if (!(write ? block->second.writable : block->second.readable)) return false;
    address = block->first + block->second.size;
    ++block;
  }
  return true;
}

std::uint64_t memory::used() const {
  std::shared_lock lock(mutex_);
  return used_;
}

std::optional<std::uint64_t> memory::take_small(std::uint64_t size, std::uint64_t align) {
  if (const auto found = small_.take(size, align)) return found;
  if (total_ - used_ < granularity) return std::nullopt;
  const auto granule = arena_.take(granularity, granularity);
  if (!granule) return std::nullopt;
  show_used_bytes(used_ += granularity);
  small_.add(*granule, granularity);
  return small_.take(size, align);
}

void memory::give_back_small(std::uint64_t address, std::uint64_t size) {
  small_.add(address, size);
  // Free space joins across granules, so a block may lie in two of them.
  const std::uint64_t last = (address + size - 1) / granularity * granularity;
  for (std::uint64_t granule = address / granularity * granularity; granule <= last; granule += granularity) {
    if (!small_.take_at(granule, granularity)) continue;
    arena_.add(granule, granularity);
    show_used_bytes(used_ -= granularity);
  }
}

CUresult memory::allocate(std::uint64_t size, std::uint64_t align, memory_kind kind, std::uint64_t owner,
                          unsigned flags, std::uint64_t& out) {
  align = std::max(align, alignment);
  if (size > total_) return CUDA_ERROR_OUT_OF_MEMORY;
  std::lock_guard lock(mutex_);
  region block{.size = size, .kind = kind, .owner = owner, .id = ++last_id_, .flags = flags};
  std::optional<std::uint64_t> begin;
  if (size <= small_limit && align <= granularity) {
    block.reserved = round_up(std::max<std::uint64_t>(size, 1), alignment);
    begin = take_small(block.reserved, align);
  } else {
    block.reserved = round_up(size, granularity);
    if (block.reserved > total_ - used_) return CUDA_ERROR_OUT_OF_MEMORY;
    begin = arena_.take(block.reserved, std::max(align, granularity));
    if (begin) show_used_bytes(used_ += block.reserved);
  }
  if (!begin) return CUDA_ERROR_OUT_OF_MEMORY;
  block.begin = *begin;
  regions_[*begin] = block;
  out = *begin;
  return CUDA_SUCCESS;
}

CUresult memory::release_locked(regions::iterator at) {
  const region block = at->second;
  if (block.kind != memory_kind::device && block.kind != memory_kind::managed)
    return CUDA_ERROR_INVALID_VALUE;
  regions_.erase(at);
  clear(block.begin, block.reserved);
  if (block.size <= small_limit && block.reserved % granularity != 0) {
    give_back_small(block.begin, block.reserved);
  } else {
    arena_.add(block.begin, block.reserved);
    show_used_bytes(used_ -= block.reserved);
  }
  return CUDA_SUCCESS;
}

CUresult memory::release(std::uint64_t address) {
  std::lock_guard lock(mutex_);
  const auto block = regions_.find(address);
  return block == regions_.end() ? CUDA_ERROR_INVALID_VALUE : release_locked(block);
}

bool memory::leave(std::uint64_t address, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto block = regions_.find(address);
  if (block == regions_.end() || block->second.id != id || block->second.leaving) return false;
  return block->second.leaving = true;
}

CUresult memory::take_granules(std::uint64_t size, std::uint64_t& out) {
  const std::lock_guard lock(mutex_);
  if (size > total_ - used_) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = arena_.take(size, granularity);
  if (!begin) return CUDA_ERROR_OUT_OF_MEMORY;
  show_used_bytes(used_ += size);
  return out = *begin, CUDA_SUCCESS;
}

void memory::give_back_granules(std::uint64_t address, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  arena_.add(address, size);
  show_used_bytes(used_ -= size);
}

void memory::place(region block) {
  const std::lock_guard lock(mutex_);
  block.id = ++last_id_;
  regions_[block.begin] = block;
}

bool memory::displace(std::uint64_t address, std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  const auto block = regions_.find(address);
  if (block == regions_.end() || block->second.kind != memory_kind::pooled) return false;
  if (id != 0 && block->second.id != id) return false;
  const std::uint64_t size = block->second.size;
  regions_.erase(block);
  clear(address, size);
  return true;
}

bool memory::displace_shared(std::uint64_t address, std::uint64_t id, bool clear_it) {
  const std::lock_guard lock(mutex_);
  const auto block = regions_.find(address);
  if (block == regions_.end() || block->second.kind != memory_kind::pooled) return false;
  if (id != 0 && block->second.id != id) return false;
  // A private page would be dropped by MADV_DONTNEED; one of a file stays the file's until it is punched out.
  const std::uint64_t first = round_up(address, page), last = (address + block->second.size) / page * page;
  if (clear_it && first < last) CHECK(::madvise(pointer(first), last - first, MADV_REMOVE) == 0);
  if (clear_it) {
    const std::uint64_t end = address + block->second.size;
    std::memset(pointer(address), 0, std::min(first, end) - address);
    if (last >= first && last < end) std::memset(pointer(last), 0, end - last);
  }
  regions_.erase(block);
  return true;
}

bool memory::charge(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  if (size > total_ - used_) return false;
  show_used_bytes(used_ += size);
  return true;
}

void memory::discharge(std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  show_used_bytes(used_ -= size);
}

void memory::release_owned(std::uint64_t owner) {
  wait_for_flights();
  std::vector<region> host;
  {
    std::lock_guard lock(mutex_);
    for (auto at = regions_.begin(); at != regions_.end();) {
      const auto block = at++;
      if (block->second.owner != owner || block->second.kind == memory_kind::pooled) continue;
      if (release_locked(block) == CUDA_SUCCESS) continue;
      if (block->second.kind == memory_kind::host) host.push_back(block->second);
      regions_.erase(block);
    }
  }
  wait_for_flights();  // of other contexts, which may have found a block just before it went
  for (const region& block : host) ::munmap(pointer(block.begin), round_up(block.size, page));
}

memory::flight::flight(memory& m) : memory_(m) {
  std::lock_guard lock(m.flight_mutex_);
  number_ = ++m.last_flight_;
  m.flights_.insert(m.flights_.end(), number_);
}

memory::flight::~flight() {
  std::lock_guard lock(memory_.flight_mutex_);
  memory_.flights_.erase(number_);
  memory_.flight_ended_.notify_all();
}

void memory::wait_for_flights() {
  std::unique_lock lock(flight_mutex_);
  const std::uint64_t last = last_flight_;
  flight_ended_.wait(lock, [&] { return flights_.empty() || *flights_.begin() > last; });
}

}  // namespace outboard::device::cpu
