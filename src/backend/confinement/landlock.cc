#include "backend/confinement/landlock.hh"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/errno_text.hh"

namespace outboard::backend {
namespace {

/// As in <linux/landlock.h> of a kernel with version 6; the header at hand may be older. A field that the
/// kernel does not know has to be 0.
struct ruleset_attributes {
  std::uint64_t files, network, scoped;
};

// Their bits, in the order in which kernels learned them.
constexpr std::uint64_t all_of_version_1 = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1;
constexpr std::uint64_t refer = 1u << 13;          // 2: renaming from one folder into another
constexpr std::uint64_t cut = 1u << 14;            // 3: LANDLOCK_ACCESS_FS_TRUNCATE
constexpr std::uint64_t control = 1u << 15;        // 5: LANDLOCK_ACCESS_FS_IOCTL_DEV
constexpr std::uint64_t bind_and_connect = 1 | 2;  // 4: LANDLOCK_ACCESS_NET_*
constexpr std::uint64_t abstract_sockets = 1;      // 6: LANDLOCK_SCOPE_*
constexpr std::uint64_t signals = 2;               // 6, too

/// All that a rule for something that is no folder may name.
constexpr std::uint64_t of_files =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | cut | control;

constexpr std::uint64_t bits_of(permission what) {
  constexpr std::uint64_t read = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  constexpr std::uint64_t change = read | LANDLOCK_ACCESS_FS_WRITE_FILE | cut | refer |
                                   LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                                   LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
                                   LANDLOCK_ACCESS_FS_MAKE_SYM;
  switch (what) {
    case permission::read:
      return read | LANDLOCK_ACCESS_FS_EXECUTE;
    case permission::device:
      return read | LANDLOCK_ACCESS_FS_WRITE_FILE | cut | control;
    case permission::change:
      return change;
    case permission::meet:
      return change | LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO;
    case permission::clear:
      return LANDLOCK_ACCESS_FS_READ_DIR | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
             LANDLOCK_ACCESS_FS_MAKE_DIR | refer;
    case permission::vanish:
      return LANDLOCK_ACCESS_FS_REMOVE_DIR;
  }
  return 0;
}

}  // namespace

int landlock_version() {
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, std::size_t{0}, LANDLOCK_CREATE_RULESET_VERSION);
  return version > 0 ? static_cast<int>(version) : 0;
}

result<file_rules> file_rules::make(int version, open_scopes open) {
  ruleset_attributes wanted{};
  wanted.files =
      all_of_version_1 | (version >= 2 ? refer : 0) | (version >= 3 ? cut : 0) | (version >= 5 ? control : 0);
  if (version >= 4) wanted.network = bind_and_connect;
  if (version >= 6)
    wanted.scoped = (open.signals ? 0 : signals) | (open.local_sockets ? 0 : abstract_sockets);
  unique_fd rules(
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &wanted, sizeof wanted, std::uint32_t{0})));
  if (!rules) return failure("Landlock: " + errno_text(errno));
  return file_rules(std::move(rules), wanted.files);
}

status file_rules::allow(const std::string& path, permission what) {
  const unique_fd place(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat about {};
  if (!place || ::fstat(place.get(), &about) != 0) return {};
  landlock_path_beneath_attr rule{};
  rule.allowed_access = bits_of(what) & handled_ & (S_ISDIR(about.st_mode) ? ~0ull : of_files);
  rule.parent_fd = place.get();
  if (::syscall(SYS_landlock_add_rule, rules_.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, std::uint32_t{0}) !=
      0)
    return failure("Landlock: " + path + ": " + errno_text(errno));
  return {};
}

status file_rules::enforce() const {
  if (::syscall(SYS_landlock_restrict_self, rules_.get(), std::uint32_t{0}) != 0)
    return failure("Landlock: " + errno_text(errno));
  return {};
}

}  // namespace outboard::backend
