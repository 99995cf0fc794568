#include "device/cpu/memory/shared_file.hh"

#include <sys/mman.h>
#include <sys/resource.h>

#include <utility>

#include "base/sealed_file.hh"

namespace outboard::device::cpu {
namespace {

/// Every block of device memory may be a file of its own: these many descriptors are left for everything
/// else.
constexpr rlim_t kept_for_others = 256;

bool too_many(int fd) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         static_cast<rlim_t>(fd) + kept_for_others > limit.rlim_cur;
}

}  // namespace

unique_fd make_shared_file(std::uint64_t size, const char* name) {
  unique_fd fd = make_sealed_file(size, name);
  if (fd && too_many(fd.get())) fd.reset();
  return fd;
}

shared_mapping::shared_mapping(shared_mapping&& other) noexcept
    : begin_(std::exchange(other.begin_, 0)), size_(std::exchange(other.size_, 0)) {}

shared_mapping& shared_mapping::operator=(shared_mapping&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  return *this;
}

shared_mapping::~shared_mapping() {
  if (begin_ != 0) ::munmap(reinterpret_cast<void*>(begin_), size_);
}

shared_mapping shared_mapping::of(int fd, std::uint64_t size, std::uint64_t near) {
  void* got =
      ::mmap(reinterpret_cast<void*>(near), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  shared_mapping made;
  if (got == MAP_FAILED) return made;
  made.begin_ = reinterpret_cast<std::uint64_t>(got);
  made.size_ = size;
  return made;
}

}  // namespace outboard::device::cpu
