#include "frontend/cuda/coredump/core_file.hh"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/errno_text.hh"
#include "base/log.hh"

namespace outboard::frontend::cuda {

std::string standard_core_name(const process_facts& own) {
  return expand_core_name("core_%t_%h_%p.nvcudmp", own);  // as driver 580.159.04, not as cuda.h
}

void core_file::begin(const std::string& path) {
  begun_ = true;
  path_ = path;
  written_ = 0;
  // A dump holds the program's data. A link in a folder of others would lead it to another file.
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_) give_up(errno == ELOOP ? "a link is in its place" : errno_text(errno));
}

void core_file::add(std::string_view bytes) {
  if (file_ && bytes.size() > most_ - written_)
    return give_up("the server sends more than " + std::to_string(most_) + " bytes");
  written_ += bytes.size();
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
