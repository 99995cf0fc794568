#include "frontend/report_file.hh"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.hh"

namespace outboard::frontend {
namespace {

constexpr std::size_t worth_writing = 64 << 10;

std::string full_name(std::string_view file) {
  if (file == "-") return "/dev/stderr";
  std::string name(file);
  if (const auto at = name.find("%p"); at != name.npos) name.replace(at, 2, std::to_string(::getpid()));
  return name;
}

/// A file that is there already is another process's, or an older one: it stays, and this one gets a name of
/// its own. Terminals, pipes and the like are written to.
int open_new(std::string& name, std::string_view what) {
  constexpr int flags = O_WRONLY | O_CLOEXEC;
  const int fd = ::open(name.c_str(), flags | O_CREAT | O_EXCL, 0644);
  struct stat about {};
  if (fd >= 0 || errno != EEXIST || ::stat(name.c_str(), &about) != 0) return fd;
  if (!S_ISREG(about.st_mode)) return ::open(name.c_str(), flags);
  const std::string own = name + "." + std::to_string(::getpid());
  log::error("there is a ", what, " in ", name, " already: process ", ::getpid(), " writes ", own);
  name = own;
  return ::open(name.c_str(), flags | O_CREAT | O_TRUNC, 0644);
}

}  // namespace

bool report_file::open(std::string_view file, std::string_view what) {
  what_ = what;
  const bool keeps = file.starts_with('+');
  std::string name = full_name(keeps ? file.substr(1) : file);
  file_ = unique_fd(keeps ? open_new(name, what)
                          : ::open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!is_open()) log::error("no ", what, ": cannot write ", name, ": ", std::strerror(errno));
  return is_open();
}

void report_file::flush_some() {
  if (text_.size() >= worth_writing) flush();
}

void report_file::flush() {
  std::size_t done = 0;
  while (done < text_.size() && !failed_) {
    const ssize_t n = ::write(file_.get(), text_.data() + done, text_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      failed_ = true;
      log::error("the ", what_, " is incomplete: ", std::strerror(n < 0 ? errno : ENOSPC));
    } else {
      done += static_cast<std::size_t>(n);
    }
  }
  text_.clear();
}

void report_file::close() {
  flush();
  file_ = {};
}

}  // namespace outboard::frontend
