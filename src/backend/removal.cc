#include "backend/removal.hh"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/errno_text.hh"
#include "base/fd.hh"

namespace outboard::backend {
namespace {

class removal {
 public:
  removal(int above, const std::string& name) : above_(above), prefix_(name + "-"), waiting_{name} {}

  status run() {
    while (!waiting_.empty()) {
      const std::string name = std::move(waiting_.back());
      waiting_.pop_back();
      OUTBOARD_TRY(remove(name));
    }
    return {};
  }

 private:
  status failed(const std::string& name) const {
    return failure("cannot remove " + name + ": " + errno_text(errno));
  }

  status remove(const std::string& name) {
    do {
      const unique_fd folder(open_folder(above_, name.c_str()));
      if (!folder) return failed(name);
      const auto emptied = empty(folder.get());
      if (!emptied.ok()) return emptied.error();
      if (::unlinkat(above_, name.c_str(), AT_REMOVEDIR) == 0) return {};
      // A listing during which files go may pass over some.
      if (errno != ENOTEMPTY || !*emptied) return failed(name);
    } while (true);
  }

  /// Its mode may forbid its owner everything.
  static int open_folder(int in, const char* name) {
    struct stat about {};
    if (::fstatat(in, name, &about, AT_SYMLINK_NOFOLLOW) != 0) return -1;
    if (S_ISDIR(about.st_mode) && (about.st_mode & 0700) != 0700 && ::fchmodat(in, name, 0700, 0) != 0)
      return -1;
    return ::openat(in, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  }

  /// Whether anything was there.
  result<bool> empty(int folder) {
    const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const std::unique_ptr<DIR, int (*)(DIR*)> list(own >= 0 ? ::fdopendir(own) : nullptr, ::closedir);
    if (!list) return failure("cannot list a folder: " + errno_text(errno));
    bool any = false;
    while (const dirent* entry = ::readdir(list.get())) {
      const char* const name = entry->d_name;
      if (name == std::string_view(".") || name == std::string_view("..")) continue;
      any = true;
      if (::unlinkat(folder, name, 0) == 0 || ::unlinkat(folder, name, AT_REMOVEDIR) == 0) continue;
      // One that is not empty. To be moved its own mode must allow that it is written: ".." in it changes.
      const std::string up = prefix_ + std::to_string(++moved_);
      const unique_fd allowed(open_folder(folder, name));
      if (!allowed || ::renameat(folder, name, above_, up.c_str()) != 0) return failed(name).error();
      waiting_.push_back(up);
    }
    return any;
  }

  const int above_;
  const std::string prefix_;
  std::vector<std::string> waiting_;
  std::uint64_t moved_ = 0;
};

}  // namespace

status remove_folder(const std::string& above, const std::string& name) {
  const unique_fd workbench(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!workbench) return failure("cannot open " + above + ": " + errno_text(errno));
  return removal(workbench.get(), name).run();
}

}  // namespace outboard::backend
