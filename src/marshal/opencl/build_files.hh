// The client machine's files that a build may read: what travels, where it lies for the compiler, and what
// neither end lets pass. Below a folder of the worker's own, which is nowhere named by text, stand
//   outboard_files/...       the files at their full paths on the client, its current folder among them
//   outboard_<32 digits>/    empty: the digits tell one set of files from another, so that a driver that
//   keeps
//                            what it has built by options alone does not take one for the other
// and while the compiler runs the worker's current folder is the client's. Values; no thread rules.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::marshal::opencl {

enum class file_bytes : std::uint8_t {
  known = 0,  ///< those that were to be kept before
  kept = 1,   ///< they come along; the session may name them again
  once = 2,   ///< they come along for this build
};

struct build_file {
  std::string path;
  sha256_digest digest{};  ///< of the bytes
  std::uint64_t size = 0;
  file_bytes bytes = file_bytes::once;
  OUTBOARD_FIELDS(path, digest, size, bytes)
};

/// service::build_files: for the lane's next build or compilation. The contents are those that come along,
/// one behind the other.
struct build_files_body {
  std::string here;  ///< the client's current folder
  std::vector<std::string> folders;
  std::vector<build_file> files;
  bytes_body contents;
  OUTBOARD_FIELDS(here, folders, files, contents)
};

inline constexpr std::string_view client_files = "outboard_files";
/// What the name of a set begins with, and how many digits follow.
inline constexpr std::string_view set_prefix = "outboard_";
inline constexpr std::size_t set_digits = 32;

/// Of one build: more than programs have, and less than what would fill a disk.
inline constexpr std::size_t most_build_files = 4096;
inline constexpr std::uint64_t most_build_file_bytes = 256ull << 20;
/// Of one session's contents that may be named again.
inline constexpr std::uint64_t most_kept_file_bytes = 64ull << 20;

/// A full path that leads nowhere else than it says: no part of it is empty, `.`, `..` or longer than names
/// may be. `/` itself is one.
bool is_plain_path(std::string_view path);

/// Is all of it as the worker wants it, but for the bytes?
bool well_formed(const build_files_body& body);

/// set_prefix and set_digits, by what the files are: folders, paths, digests.
std::string name_of_set(const build_files_body& body);

}  // namespace outboard::marshal::opencl
