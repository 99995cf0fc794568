#include "backend/disk/folder.hh"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "base/errno_text.hh"

namespace outboard::backend {

result<unique_fd> open_own_folder(const std::string& path) {
  if (path.empty() || path.front() != '/') return failure("\"" + path + "\" is no absolute path");
  for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1))
    ::mkdir(path.substr(0, slash).c_str(), 0700);  // if one cannot be made the last one says so
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return failure("cannot make " + path + ": " + errno_text(errno));
  unique_fd folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat about {};
  if (!folder || ::fstat(folder.get(), &about) != 0)
    return failure("cannot open " + path + ": " + errno_text(errno));
  if (about.st_uid != ::geteuid())
    return failure(path + " belongs to user " + std::to_string(about.st_uid) + ", not to us");
  if ((about.st_mode & 022) != 0) return failure(path + " may be written by others; run: chmod 700 " + path);
  return folder;
}

status for_each_entry(int folder, const std::function<bool(const char*)>& each) {
  // Not a duplicate of the descriptor: that would share its position with another thread's listing.
  const int own = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(own >= 0 ? ::fdopendir(own) : nullptr, ::closedir);
  if (!stream) {
    const int why = errno;
    if (own >= 0) ::close(own);
    return failure("cannot list a folder: " + errno_text(why));
  }
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name(entry->d_name);
    if (name != "." && name != ".." && !each(entry->d_name)) break;
  }
  return {};
}

result<std::vector<folder_file>> list_folder(int folder) {
  std::vector<folder_file> files;
  OUTBOARD_TRY(for_each_entry(folder, [&](const char* name) {
    struct stat about {};
    if (::fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(about.st_mode)) return true;
    const std::int64_t used = about.st_mtim.tv_sec * 1'000'000'000ll + about.st_mtim.tv_nsec;
    files.push_back({name, static_cast<std::uint64_t>(about.st_size), used});
    return true;
  }));
  return files;
}

bool read_all(int file, std::span<std::byte> into) {
  for (off_t at = 0; !into.empty();) {
    const ssize_t got = ::pread(file, into.data(), into.size(), at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    into = into.subspan(static_cast<std::size_t>(got));
  }
  return true;
}

}  // namespace outboard::backend
