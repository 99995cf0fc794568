// Finds out what lies in a folder in which strangers write: how much, and when it was used last. Reads names
// and sizes only, opens nothing but folders, follows no link, and stops if there is too much. Free functions,
// any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::backend {

/// Something that is kept or removed as a whole.
struct kept_unit {
  std::string above, name;  ///< a name in the folder itself or, with `above`, in that folder below it
  std::uint64_t bytes = 0;
  std::int64_t used = 0;  ///< nanoseconds of the latest modification of anything in it
};

struct survey {
  std::vector<kept_unit> units;
  std::uint64_t bytes = 0;
  /// True if all entries have a kind, depth and mode that compilers produce, and there is not more than was
  /// asked for. Otherwise the rest was not surveyed.
  bool sound = true;
};

/// What an entry counts at least, because small and empty files use up a disk, too.
inline constexpr std::uint64_t least_entry_bytes = 4096;

/// `levels`: with 2 the entries of the folder's folders are units, else the folder's own entries are.
survey survey_folder(int folder, int levels, std::uint64_t most_bytes);

}  // namespace outboard::backend
