// By what a file's replacement or change shows without its being read. Values; any thread.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

namespace outboard {

struct file_stamp {
  std::int64_t inode = 0, size = 0, seconds = 0, nanoseconds = 0;  ///< all 0: there is no such file
  bool operator==(const file_stamp&) const = default;
};

inline file_stamp stamp_of(const std::string& path) {
  struct stat about {};
  if (path.empty() || ::stat(path.c_str(), &about) != 0) return {};
  return {static_cast<std::int64_t>(about.st_ino), about.st_size, about.st_mtim.tv_sec,
          about.st_mtim.tv_nsec};
}

}  // namespace outboard
