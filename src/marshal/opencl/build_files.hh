// The client machine's files that a build may read: what travels, where it is placed for the compiler, and
// what neither end lets pass. The worker has a folder of its own, which no text names. It contains
//   outboard_files/...       the files at their full paths on the client, its current folder among them
//   outboard_<32 digits>/    empty. The digits tell one set of files from another, so that a driver that
//                            caches what it has built by options alone does not confuse the two.
// While the compiler runs, the worker's current folder is the client's. Values; no thread rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::marshal::opencl {

enum class file_bytes : std::uint8_t {
  known = 0,  ///< files that an earlier build asked to keep
  kept = 1,   ///< the contents come along; the session may refer to them again
  once = 2,   ///< the contents come along for this build only
};

struct build_file {
  std::string path;
  sha256_digest digest{};  ///< digest of the contents
  std::uint64_t size = 0;
  file_bytes bytes = file_bytes::once;
  OUTBOARD_FIELDS(path, digest, size, bytes)
};

/// service::build_files: for the lane's next build or compilation. The fields are followed by the contents
/// that come along, one after the other.
struct build_files_body {
  std::string here;  ///< the client's current folder
  std::vector<std::string> folders;
  std::vector<build_file> files;
  bytes_body contents;
  OUTBOARD_FIELDS(here, folders, files, contents)
};

inline constexpr std::string_view client_files = "outboard_files";
/// The name of a set begins with this prefix, and so many digits follow.
inline constexpr std::string_view set_prefix = "outboard_";
inline constexpr std::size_t set_digits = 32;

/// Limits of one build: more than programs need, and less than fills a disk.
inline constexpr std::size_t most_build_files = 4096;
inline constexpr std::uint64_t most_build_file_bytes = 256ull << 20;
/// The limit of all contents that a session may refer to again.
inline constexpr std::uint64_t most_kept_file_bytes = 64ull << 20;

/// Is this a full path that leads where it says? No part of it is empty, `.`, `..` or longer than names may
/// be. `/` itself is one.
bool is_plain_path(std::string_view path);

/// Is everything as the worker requires it, except for the contents?
bool well_formed(const build_files_body& body);

/// Returns set_prefix and set_digits for a set of files: a digest of folders, paths and digests.
std::string name_of_set(const build_files_body& body);

}  // namespace outboard::marshal::opencl
