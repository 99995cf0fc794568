#include "backend/disk/survey.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "backend/disk/folder.hh"
#include "base/fd.hh"

namespace outboard::backend {
namespace {

/// PoCL's are five deep, NVIDIA's three.
constexpr int deepest = 16;

class walk {
 public:
  walk(int levels, std::uint64_t most) : levels_(levels), most_(most) {}

  /// `unit`: what lies in this folder belongs to it; null: it is a unit of its own, or holds units.
  void look(int folder, int depth, const std::string& above, kept_unit* unit) {
    const status listed = for_each_entry(folder, [&](const char* name) {
      struct stat about {};
      if (::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT || fail();
      count(folder, name, about, depth, above, unit);
      return found_.sound;
    });
    if (!listed.ok()) fail();
  }

  survey finish() && { return std::move(found_); }

 private:
  bool fail() { return found_.sound = false; }

  void count(int folder, const char* name, const struct stat& about, int depth, const std::string& above,
             kept_unit* unit) {
    const bool is_folder = S_ISDIR(about.st_mode);
    if (!is_folder && !S_ISREG(about.st_mode) && !S_ISLNK(about.st_mode)) {
      fail();
      return;
    }
    const bool holds_units = !unit && is_folder && depth + 1 < levels_;
    kept_unit own{above, name, 0, 0};
    kept_unit& counts = unit ? *unit : own;
    const std::uint64_t bytes = std::max({static_cast<std::uint64_t>(about.st_size), least_entry_bytes,
                                          static_cast<std::uint64_t>(about.st_blocks) * 512});
    counts.bytes += bytes;
    counts.used =
        std::max<std::int64_t>(counts.used, about.st_mtim.tv_sec * 1'000'000'000ll + about.st_mtim.tv_nsec);
    found_.bytes += bytes;
    // Neither sum can overflow: nothing is added to one that is above a limit of 2^44, and no file is larger
    // than 2^63.
    if (found_.bytes > most_ || depth >= deepest) {
      fail();
      return;
    }
    if (is_folder) {
      const unique_fd below(::openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (below) {
        look(below.get(), depth + 1, holds_units ? name : "", holds_units ? nullptr : &counts);
      } else if (errno != ENOENT) {
        fail();
      }
    }
    if (!unit && !holds_units) found_.units.push_back(std::move(own));
  }

  const int levels_;
  const std::uint64_t most_;
  survey found_;
};

}  // namespace

survey survey_folder(int folder, int levels, std::uint64_t most_bytes) {
  walk all(levels, most_bytes);
  all.look(folder, 0, "", nullptr);
  return std::move(all).finish();
}

}  // namespace outboard::backend
