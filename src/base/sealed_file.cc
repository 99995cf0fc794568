#include "base/sealed_file.hh"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace outboard {
namespace {

constexpr int needed_seals = F_SEAL_SHRINK | F_SEAL_GROW;

/// Growing a file beyond this limit raises a signal that would end the process.
bool allowed(std::uint64_t size) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || size <= limit.rlim_cur;
}

}  // namespace

unique_fd make_sealed_file(std::uint64_t size, const char* name) {
  if (!allowed(size)) return errno = EFBIG, unique_fd();
  unique_fd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fd;
  if (::ftruncate(fd.get(), static_cast<off_t>(size)) == 0 &&
      ::fcntl(fd.get(), F_ADD_SEALS, needed_seals | F_SEAL_SEAL) == 0)
    return fd;
  const int why = errno;
  fd.reset();
  errno = why;
  return fd;
}

std::optional<std::uint64_t> size_of_sealed_file(int fd) {
  // Files of other file systems have no seals.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  struct stat about {};
  if (seals < 0 || (seals & needed_seals) != needed_seals || ::fstat(fd, &about) != 0 || about.st_size <= 0)
    return std::nullopt;
  return static_cast<std::uint64_t>(about.st_size);
}

}  // namespace outboard
