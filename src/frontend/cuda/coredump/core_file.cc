#include "frontend/cuda/coredump/core_file.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/errno_text.hh"
#include "base/log.hh"

namespace outboard::frontend::cuda {
namespace {

/// Nine tenths of what the file system has left for this user; of a device or a pipe no limit.
std::uint64_t room_for(int file) {
  struct stat about {};
  struct statvfs system {};
  if (::fstat(file, &about) != 0 || !S_ISREG(about.st_mode) || ::fstatvfs(file, &system) != 0)
    return ~std::uint64_t{0};
  const std::uint64_t free = std::uint64_t{system.f_bavail} * system.f_frsize;
  return free - free / 10;
}

}  // namespace

std::string standard_core_name(const process_facts& own) {
  return expand_core_name("core_%t_%h_%p.nvcudmp", own);  // as driver 580.159.04, not as cuda.h
}

void core_file::begin(const std::string& path) {
  begun_ = true;
  path_ = path;
  // A dump holds the program's data. A link in a folder of others would lead it to another file.
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_) return give_up(errno == ELOOP ? "a link is in its place" : errno_text(errno));
  room_ = std::min(most_, room_for(file_.get()));
}

void core_file::add(std::string_view bytes) {
  if (file_ && bytes.size() > room_) return give_up("the server sends more than there is room for");
  room_ -= std::min<std::uint64_t>(room_, bytes.size());
  while (file_ && !bytes.empty()) {
    const ssize_t put = ::write(file_.get(), bytes.data(), bytes.size());
    if (put > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (put < 0 && errno != EINTR) {
      give_up(errno_text(errno));
    }
  }
}

bool core_file::end() {
  begun_ = false;
  const bool whole = static_cast<bool>(file_);
  file_.reset();
  return whole;
}

void core_file::give_up(const std::string& why) {
  log::error("core dump of the GPU: ", path_, ": ", why);
  file_.reset();
}

}  // namespace outboard::frontend::cuda
