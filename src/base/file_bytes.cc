#include "base/file_bytes.hh"

#include <errno.h>
#include <unistd.h>

#include <array>

#include "base/errno_text.hh"

namespace outboard {

result<std::string> read_whole(int file, const std::string& path, std::size_t most) {
  std::string text;
  std::array<char, 16384> part;
  for (;;) {
    const ssize_t got = ::read(file, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("cannot read " + path + ": " + errno_text(errno));
    if (got == 0) return text;
    text.append(part.data(), static_cast<std::size_t>(got));
    if (text.size() > most)
      return failure(path + " is too large: it may have " + std::to_string(most) + " bytes");
  }
}

bool write_whole(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote == 0) errno = EIO;
    if (wrote <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

}  // namespace outboard
