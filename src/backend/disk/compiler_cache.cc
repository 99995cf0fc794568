#include "backend/disk/compiler_cache.hh"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "backend/disk/folder.hh"
#include "backend/disk/removal.hh"
#include "backend/disk/survey.hh"
#include "base/errno_text.hh"
#include "base/hex.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

constexpr const char* gone = ".gone";
constexpr std::string_view scope_label = "what compilers keep";

/// With less a compiler could soon not write at all, and its builds fail.
constexpr std::uint64_t least_free_bytes = 64u << 20;

/// What goes when it is too much: so much that it does not begin again at once.
constexpr std::uint64_t left_after_eviction(std::uint64_t limit) { return limit / 4 * 3; }

std::string name_of(const image_scope& scope) {
  return hex(hmac_sha256(scope, std::as_bytes(std::span(scope_label))));
}

bool is_identity(std::string_view name) {
  return name.size() == 64 && name.find_first_not_of("0123456789abcdef") == name.npos;
}

std::optional<std::uint32_t> number_of(std::string_view name) {
  std::uint32_t number = 0;
  const auto [end, problem] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool whole = problem == std::errc() && end == name.data() + name.size();
  return whole && number > 0 && std::to_string(number) == name ? std::optional(number) : std::nullopt;
}

/// Of an identity, ascending.
result<std::vector<std::uint32_t>> numbers_in(int identity) {
  std::vector<std::uint32_t> numbers;
  OUTBOARD_TRY(for_each_entry(identity, [&](const char* name) {
    if (const auto number = number_of(name)) numbers.push_back(*number);
    return true;
  }));
  std::ranges::sort(numbers);
  return numbers;
}

/// Nothing is wrong with the disk itself.
status fits_for_code(int folder, const std::string& path) {
  struct statvfs about {};
  if (::fstatvfs(folder, &about) != 0) return failure("cannot look at " + path + ": " + errno_text(errno));
  if ((about.f_flag & ST_RDONLY) != 0) return failure(path + " cannot be written: its disk is read-only");
  if ((about.f_flag & ST_NOEXEC) != 0)
    return failure(path + " is on a disk from which nothing may be run (noexec)");
  if (const std::uint64_t left = std::uint64_t{about.f_bavail} * about.f_frsize; left < least_free_bytes)
    return failure(fmt::format("the disk of {} is full: it has {} MiB left", path, left >> 20));
  return {};
}

/// One that others may have removed, or put away, meanwhile.
bool is_still(int above, const std::string& path, int opened) {
  struct stat there {
  }, here{};
  return ::fstatat(above, path.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 && ::fstat(opened, &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

class tidying {
 public:
  explicit tidying(const compiler_cache_settings& settings)
      : settings_(settings), most_of_one_(std::min(settings.per_identity, settings.size)) {}

  status run() {
    auto root = open_own_folder(settings_.directory);
    if (!root.ok()) return std::move(root).error();
    root_ = std::move(*root);
    if (::flock(root_.get(), LOCK_EX | LOCK_NB) != 0) return {};  // another process is at it
    auto workbench = open_own_folder(settings_.directory + "/" + gone);
    if (!workbench.ok()) return std::move(workbench).error();
    gone_ = std::move(*workbench);
    OUTBOARD_TRY(look_at_all());
    hold_together();
    return remove_gone();
  }

 private:
  struct kept_identity {
    std::string name;
    std::uint64_t bytes = 0;
    std::int64_t used = 0;
  };

  status look_at_all() {
    std::vector<std::string> names;
    OUTBOARD_TRY(for_each_entry(root_.get(), [&](const char* name) {
      if (is_identity(name)) names.emplace_back(name);
      return true;
    }));
    for (const std::string& name : names) {
      const unique_fd folder(open_below(root_.get(), name));
      struct stat about {};
      if (!folder || ::fstat(folder.get(), &about) != 0) continue;
      const auto bytes = look_at(folder.get(), name);
      if (!bytes.ok()) return bytes.error();
      all_.push_back({name, *bytes, about.st_mtim.tv_sec * 1'000'000'000ll + about.st_mtim.tv_nsec});
    }
    return {};
  }

  /// The bytes of an identity that are left.
  result<std::uint64_t> look_at(int folder, const std::string& name) {
    const auto numbers = numbers_in(folder);
    if (!numbers.ok()) return numbers.error();
    std::uint64_t bytes = 0;
    for (const std::uint32_t number : *numbers) {
      const std::string path = name + "/" + std::to_string(number);
      const unique_fd opened(open_below(folder, std::to_string(number)));
      if (!opened) continue;
      if (number != numbers->back() && lock(opened.get())) {
        put_away(path);
        continue;
      }
      bytes += look_at_number(folder, number, opened.get(), path, number == numbers->back());
    }
    return bytes;
  }

  std::uint64_t look_at_number(int identity, std::uint32_t number, int opened, const std::string& path,
                               bool last) {
    auto found = survey_all(opened);
    if (!last || (found.sound && found.bytes <= most_of_one_)) return found.bytes;
    if (!lock(opened)) {
      // Its sessions go on with it; for later ones there is another.
      log::debug("OpenCL compilers' ", path, " is full (", found.bytes, " bytes) and in use");
      ::mkdirat(identity, std::to_string(number + 1).c_str(), 0700);
      return found.bytes;
    }
    found = survey_all(opened);  // now nobody writes any more
    const std::uint64_t left = found.sound ? evict(opened, found) : found.bytes;
    if (left <= most_of_one_ && found.sound) return left;
    return put_away(path) ? 0 : left;
  }

  struct placed_unit : kept_unit {
    const kept_kind* kind = nullptr;
  };
  struct whole_survey {
    std::vector<placed_unit> units;
    std::uint64_t bytes = 0;
    bool sound = true;
  };

  whole_survey survey_all(int number) const {
    whole_survey all;
    for (const kept_kind& kind : kept_kinds) {
      const unique_fd folder(open_below(number, kind.name));
      if (!folder) continue;
      // One that is larger by far is not looked at further: it goes as a whole.
      survey found = survey_folder(folder.get(), kind.levels, 2 * most_of_one_);
      all.bytes += found.bytes;
      all.sound = all.sound && found.sound;
      if (kind.levels == 0) {
        placed_unit whole;
        whole.name = kind.name;
        whole.bytes = found.bytes;
        for (const kept_unit& each : found.units) whole.used = std::max(whole.used, each.used);
        whole.kind = &kind;
        all.units.push_back(std::move(whole));
        continue;
      }
      for (kept_unit& each : found.units) all.units.push_back({std::move(each), &kind});
    }
    return all;
  }

  /// What is left.
  std::uint64_t evict(int number, whole_survey& found) {
    std::ranges::sort(found.units, {}, &placed_unit::used);
    std::uint64_t left = found.bytes;
    std::size_t programs = 0;
    for (const placed_unit& each : found.units) {
      if (left <= left_after_eviction(most_of_one_)) break;
      if (!take_out_unit(number, each)) continue;
      left -= each.bytes;
      ++programs;
    }
    log::debug("of what OpenCL's compilers keep ", programs, " of ", found.units.size(), " went, ", left,
               " bytes are left");
    return left;
  }

  bool take_out_unit(int number, const placed_unit& unit) {
    if (unit.kind->levels == 0) {
      if (!take_out(number, unit.name.c_str(), gone_.get(), next_gone()).ok()) return false;
      ::mkdirat(number, unit.name.c_str(), 0700);
      return true;
    }
    const unique_fd kind(open_below(number, unit.kind->name));
    const unique_fd above(unit.above.empty() ? -1 : open_below(kind.get(), unit.above));
    if (!kind || (!above && !unit.above.empty())) return false;
    if (!take_out(above ? above.get() : kind.get(), unit.name.c_str(), gone_.get(), next_gone()).ok())
      return false;
    if (above) ::unlinkat(kind.get(), unit.above.c_str(), AT_REMOVEDIR);  // if that was the last
    return true;
  }

  /// Whole identities go until all together fit; those with sessions stay.
  void hold_together() {
    std::ranges::sort(all_, {}, &kept_identity::used);
    std::uint64_t bytes = 0;
    for (const kept_identity& each : all_) bytes += each.bytes;
    for (const kept_identity& each : all_) {
      if (bytes <= settings_.size) return;
      if (each.bytes != 0 && put_away_identity(each.name)) bytes -= each.bytes;
    }
  }

  bool put_away_identity(const std::string& name) {
    const unique_fd folder(open_below(root_.get(), name));
    const auto numbers = numbers_in(folder.get());
    if (!numbers.ok()) return false;
    std::vector<unique_fd> locked;
    for (const std::uint32_t number : *numbers) {
      locked.emplace_back(open_below(folder.get(), std::to_string(number)));
      if (!locked.back() || !lock(locked.back().get())) return false;
    }
    return put_away(name);
  }

  bool put_away(const std::string& path) {
    if (::renameat(root_.get(), path.c_str(), gone_.get(), next_gone().c_str()) == 0) return true;
    log::warn("cannot remove ", settings_.directory, "/", path, ": ", errno_text(errno));
    return false;
  }

  /// All, also what another left that was killed. What cannot be removed keeps nothing else from it.
  status remove_gone() {
    std::vector<std::string> names;
    OUTBOARD_TRY(
        for_each_entry(gone_.get(), [&](const char* name) { return names.emplace_back(name), true; }));
    status all;
    for (const std::string& name : names) {
      if (::unlinkat(gone_.get(), name.c_str(), 0) == 0) continue;
      auto removed = remove_folder(settings_.directory + "/" + gone, name);
      if (!removed.ok()) all = std::move(removed);
    }
    return all;
  }

  static int open_below(int folder, const std::string& name) {
    return ::openat(folder, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }
  static bool lock(int folder) { return ::flock(folder, LOCK_EX | LOCK_NB) == 0; }
  std::string next_gone() { return std::to_string(::getpid()) + "-" + std::to_string(++gone_so_far_); }

  const compiler_cache_settings& settings_;
  const std::uint64_t most_of_one_;
  unique_fd root_, gone_;
  std::vector<kept_identity> all_;
  std::uint64_t gone_so_far_ = 0;
};

}  // namespace

result<cache_lease> lease_compiler_cache(const compiler_cache_settings& settings, const image_scope& scope) {
  const std::string name = name_of(scope), identity_path = settings.directory + "/" + name;
  auto root = open_own_folder(settings.directory);
  if (!root.ok()) return std::move(root).error();
  OUTBOARD_TRY(fits_for_code(root->get(), settings.directory));
  auto identity = open_own_folder(identity_path);
  if (!identity.ok()) return std::move(identity).error();
  const auto numbers = numbers_in(identity->get());
  if (!numbers.ok()) return numbers.error();
  const std::string number = std::to_string(numbers->empty() ? 1 : numbers->back());
  cache_lease lease{identity_path + "/" + number, {}};
  auto folder = open_own_folder(lease.folder);
  if (!folder.ok()) return std::move(folder).error();
  lease.lock = std::move(*folder);
  if (::flock(lease.lock.get(), LOCK_SH | LOCK_NB) != 0 ||
      !is_still(root->get(), name + "/" + number, lease.lock.get()))
    return error{action::retry, lease.folder + " is just being removed"};
  for (const kept_kind& kind : kept_kinds) {
    if (const auto made = open_own_folder(lease.folder + "/" + kind.name); !made.ok()) return made.error();
  }
  ::futimens(identity->get(), nullptr);  // it is used
  return lease;
}

status tidy_compiler_cache(const compiler_cache_settings& settings) { return tidying(settings).run(); }

}  // namespace outboard::backend
