#include "transport/tls/pem_file.hh"

#include <errno.h>
#include <fcntl.h>

#include "base/errno_text.hh"
#include "base/file_bytes.hh"

namespace outboard::transport::tls {

unique_fd open_pem(const std::string& path, struct stat& about) {
  unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file && (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode))) {
    file.reset();
    errno = EINVAL;
  }
  return file;
}

result<std::string> read_pem(const std::string& path) {
  struct stat about {};
  const unique_fd file = open_pem(path, about);
  if (!file) return failure("cannot read " + path + ": " + errno_text(errno));
  return read_whole(file.get(), path, most_of_pem);
}

}  // namespace outboard::transport::tls
