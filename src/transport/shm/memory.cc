#include "transport/shm/memory.hh"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>

#include "base/errno_text.hh"
#include "base/sealed_file.hh"

namespace outboard::transport::shm {

namespace {

bool is_ring_size(std::uint64_t bytes) {
  return std::has_single_bit(bytes) && bytes >= smallest_ring && bytes <= largest_ring;
}

std::size_t total(const ring_sizes& sizes) { return header_bytes + sizes.up + sizes.down; }

error unfit(const std::string& why) { return failure("the memory for rings is unfit: " + why); }

}  // namespace

memory::memory(memory&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)), size_(other.size_), sizes_(other.sizes_) {}

memory::~memory() {
  if (base_) ::munmap(base_, size_);
}

result<memory> memory::map(int fd, std::size_t size) {
  void* base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return failure("cannot map the memory of rings: " + errno_text(errno));
  memory made(base, size, {});
  // A forked child must not touch its parent's session.
  if (::madvise(base, size, MADV_DONTFORK) != 0)
    return failure("cannot keep rings out of forked children: " + errno_text(errno));
  return made;
}

result<std::pair<memory, unique_fd>> memory::make(const ring_sizes& sizes) {
  unique_fd fd = make_sealed_file(total(sizes), "outboard-rings");
  if (!fd) return failure("no memory for rings: " + errno_text(errno));
  result<memory> mapped = map(fd.get(), total(sizes));
  if (!mapped) return std::move(mapped).error();
  mapped->sizes_ = sizes;
  auto* words =
      new (mapped->base_) shared_words;  // the file is zero, which is the initial value of every word
  words->magic = magic;
  words->up_bytes = sizes.up;
  words->down_bytes = sizes.down;
  return std::pair(std::move(mapped).value(), std::move(fd));
}

result<memory> memory::adopt(int fd) {
  struct statfs system {};
  struct stat about {};
  if (::fstatfs(fd, &system) != 0 || ::fstat(fd, &about) != 0) return unfit(errno_text(errno));
  // Files of other file systems may take pages away, or have none to give.
  if (system.f_type != TMPFS_MAGIC || !S_ISREG(about.st_mode)) return unfit("it is not a memory file");
  const auto sealed = size_of_sealed_file(fd);
  if (!sealed) return unfit("it is not sealed");
  const std::uint64_t size = *sealed;
  if (size < header_bytes || size > header_bytes + 2 * largest_ring)
    return unfit(std::to_string(size) + " bytes");
  result<memory> mapped = map(fd, size);
  if (!mapped) return mapped;
  const volatile auto* words = static_cast<const volatile shared_words*>(mapped->base_);
  const std::uint64_t found = words->magic;  // each is read once
  const ring_sizes sizes{words->up_bytes, words->down_bytes};
  if (found != magic) return unfit("it holds something else");
  if (!is_ring_size(sizes.up) || !is_ring_size(sizes.down) || total(sizes) != size)
    return unfit("rings of " + std::to_string(sizes.up) + " and " + std::to_string(sizes.down) + " in " +
                 std::to_string(size) + " bytes");
  mapped->sizes_ = sizes;
  return mapped;
}

}  // namespace outboard::transport::shm
