// What lies in a folder in which strangers write: how much it is and since when nobody used it. Looks at
// names and sizes alone, opens folders and nothing else, follows no link, and gives up what is too much to
// look at. Free functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::backend {

/// Something that is kept or goes as a whole.
struct kept_unit {
  std::string above, name;  ///< a name in the folder itself, or, with `above`, in that folder of it
  std::uint64_t bytes = 0;
  std::int64_t used = 0;  ///< nanoseconds of the latest modification of anything in it
};

struct survey {
  std::vector<kept_unit> units;
  std::uint64_t bytes = 0;
  /// Nothing of a kind, depth or mode that compilers make nothing of, and at most as much as was asked for.
  /// Otherwise the rest was not looked at.
  bool sound = true;
};

/// What an entry counts at least: files that are small or empty use up a disk, too.
inline constexpr std::uint64_t least_entry_bytes = 4096;

/// `levels`: 2 where names in the folder's folders are units, 1 where names in it are.
survey survey_folder(int folder, int levels, std::uint64_t most_bytes);

}  // namespace outboard::backend
