#include "backend/opencl/shared_pages.hh"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>

#include "base/errno_text.hh"
#include "base/log.hh"
#include "base/pages.hh"
#include "base/sealed_file.hh"

namespace outboard::backend::opencl {
namespace {

/// Covers all addresses that a process can have.
constexpr std::uint64_t every_address = 1ull << 48;
constexpr int both_ways = PROT_READ | PROT_WRITE;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

std::string all_of(int fd) {
  std::string text;
  std::array<char, 1 << 14> part;
  ssize_t n = 0;
  while ((n = ::pread(fd, part.data(), part.size(), static_cast<off_t>(text.size()))) > 0)
    text.append(part.data(), static_cast<std::size_t>(n));
  return text;
}

/// Recognises a line of /proc/self/maps about memory that is private to the process, belongs to no file, and
/// may be read and written.
bool ordinary(const char* permissions, unsigned long long inode, std::string_view name) {
  const bool nameless = name.empty() || name == "[heap]" || name.starts_with("[anon:");
  return std::string_view(permissions) == "rw-p" && inode == 0 && nameless;
}

}  // namespace

bool shared_pages::open() {
  map_.reset(::open("/proc/self/maps", O_RDONLY | O_CLOEXEC));
  file_ = make_sealed_file(every_address, "outboard-opencl");
  const std::string cause = errno_text(errno);
  void* const page = ::mmap(nullptr, page_size(), both_ways, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<std::uint64_t>(page);
  const bool can = map_ && file_ && page != MAP_FAILED && share(address, page_size());
  if (page != MAP_FAILED) ::munmap(page, page_size());
  if (can) return true;
  log::info("OpenCL devices show no fine-grained memory: ", !map_    ? "this process cannot read its own map"
                                                            : !file_ ? cause
                                                                     : "no page can be shared");
  file_.reset();
  return false;
}

bool shared_pages::is_ordinary(std::uint64_t address, std::uint64_t size) const {
  const std::string map = all_of(map_.get());
  std::uint64_t at = address;
  for (std::size_t line = 0; line < map.size() && at < address + size;) {
    const std::size_t end = std::min(map.find('\n', line), map.size());
    unsigned long long first = 0, last = 0, inode = 0;
    char permissions[5] = "";
    int name = 0;
    const std::string text = map.substr(line, end - line);
    line = end + 1;
    if (std::sscanf(text.c_str(), "%llx-%llx %4s %*s %*s %llu %n", &first, &last, permissions, &inode,
                    &name) < 4)
      return false;
    if (last <= at) continue;
    if (first > at ||
        !ordinary(permissions, inode, std::string_view(text).substr(static_cast<std::size_t>(name))))
      return false;
    at = last;
  }
  return at >= address + size;
}

bool shared_pages::share(std::uint64_t address, std::uint64_t size) {
  if (address % page_size() || size % page_size() || size == 0 || address >= every_address ||
      size > every_address - address || !is_ordinary(address, size))
    return false;
  return ::mmap(pointer(address), size, both_ways, MAP_SHARED | MAP_FIXED, file_.get(),
                static_cast<off_t>(address)) != MAP_FAILED;
}

bool shared_pages::take_back(std::uint64_t address, std::uint64_t size) {
  // Frees the file's pages now, because the client may keep its mapping indefinitely.
  ::madvise(pointer(address), size, MADV_REMOVE);
  return ::mmap(pointer(address), size, both_ways, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
         MAP_FAILED;
}

}  // namespace outboard::backend::opencl
