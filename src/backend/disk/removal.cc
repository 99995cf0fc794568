#include "backend/disk/removal.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

#include "backend/disk/folder.hh"
#include "base/errno_text.hh"
#include "base/fd.hh"

namespace outboard::backend {
namespace {

/// Without following a link, whatever somebody puts in its place meanwhile. Its mode may forbid its owner
/// everything.
int open_folder(int in, const char* name) {
  constexpr int how = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const unique_fd place(::openat(in, name, O_PATH | how));
  struct stat about {};
  if (!place || ::fstat(place.get(), &about) != 0) return -1;
  // A mode is changed by a path; this one is the very folder's.
  const std::string itself = "/proc/self/fd/" + std::to_string(place.get());
  if ((about.st_mode & 0700) != 0700 && ::chmod(itself.c_str(), 0700) != 0) return -1;
  return ::openat(place.get(), ".", O_RDONLY | how);
}

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

  /// Whether anything was there.
  result<bool> empty(int folder) {
    bool any = false;
    status done;
    OUTBOARD_TRY(for_each_entry(folder, [&](const char* name) {
      any = true;
      const std::string up = prefix_ + std::to_string(moved_ + 1);
      const auto moved = take_out(folder, name, above_, up);
      if (!moved.ok()) return done = moved.error(), false;
      if (*moved) waiting_.push_back(up), ++moved_;
      return true;
    }));
    OUTBOARD_TRY(std::move(done));
    return any;
  }

  const int above_;
  const std::string prefix_;
  std::vector<std::string> waiting_;
  std::uint64_t moved_ = 0;
};

}  // namespace

result<bool> take_out(int folder, const char* name, int above, const std::string& up) {
  if (::unlinkat(folder, name, 0) == 0 || ::unlinkat(folder, name, AT_REMOVEDIR) == 0) return false;
  if (errno == ENOENT) return false;
  // One that is not empty. To be moved its own mode must allow that it is written: ".." in it changes.
  const unique_fd allowed(open_folder(folder, name));
  if (!allowed || ::renameat(folder, name, above, up.c_str()) != 0)
    return failure("cannot remove " + std::string(name) + ": " + errno_text(errno));
  return true;
}

status remove_folder(const std::string& above, const std::string& name) {
  const unique_fd workbench(::open(above.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!workbench) return failure("cannot open " + above + ": " + errno_text(errno));
  return removal(workbench.get(), name).run();
}

}  // namespace outboard::backend
