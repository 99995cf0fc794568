#include "frontend/cuda/core_file.hh"

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
  file_.reset(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_) give_up("open");
}

void core_file::add(std::string_view bytes) {
  while (file_ && !bytes.empty()) {
    const ssize_t put = ::write(file_.get(), bytes.data(), bytes.size());
    if (put > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(put));
    } else if (put < 0 && errno != EINTR) {
      give_up("write");
    }
  }
}

bool core_file::end() {
  begun_ = false;
  const bool whole = static_cast<bool>(file_);
  file_.reset();
  return whole;
}

void core_file::give_up(const char* what) {
  log::error("core dump of the GPU: ", what, " ", path_, ": ", errno_text(errno));
  file_.reset();
}

}  // namespace outboard::frontend::cuda
