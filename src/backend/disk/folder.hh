// Makes, checks and lists a folder of ours. Uses descriptors, so that no other process can put another folder
// in its place. Free functions, any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

/// Makes the folder (0700), and those above it, if it does not exist. Refuses a link, another user's folder,
/// and one that others may write to.
result<unique_fd> open_own_folder(const std::string& path);

/// Calls `each` with the name of each entry except "." and "..", until it returns false.
status for_each_entry(int folder, const std::function<bool(const char*)>& each);

struct folder_file {
  std::string name;
  std::uint64_t size = 0;
  std::int64_t used = 0;  ///< nanoseconds of its last modification
};

/// Returns the regular files in the folder.
result<std::vector<folder_file>> list_folder(int folder);

/// Reads the file from its beginning. False: it is shorter, or cannot be read.
bool read_all(int file, std::span<std::byte> into);

}  // namespace outboard::backend
