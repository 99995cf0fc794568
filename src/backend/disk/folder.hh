// A folder of files of ours: made, checked, listed. By descriptor, so that nobody can put another in its
// place. Free functions, any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

/// Makes it (0700), and the folders above it, if it is not there. Refused: a link, another user's, one that
/// others may write.
result<unique_fd> open_own_folder(const std::string& path);

/// Calls `each` with the name of whatever is in it, but for "." and "..", until it gives false.
status for_each_entry(int folder, const std::function<bool(const char*)>& each);

struct folder_file {
  std::string name;
  std::uint64_t size = 0;
  std::int64_t used = 0;  ///< nanoseconds of its last modification
};

/// The regular files in it.
result<std::vector<folder_file>> list_folder(int folder);

/// From its beginning. False: it is shorter, or cannot be read.
bool read_all(int file, std::span<std::byte> into);

}  // namespace outboard::backend
