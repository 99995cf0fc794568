#include "tool/opencl_vendors.hh"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/errno_text.hh"
#include "base/icd_files.hh"
#include "base/temporary_folder.hh"

namespace outboard::tool {
namespace {

constexpr std::string_view own_library = "libOutboardOpenCL.so.1";
}  // namespace

result<opencl_vendors> opencl_vendors::make(const std::string& libraries) {
  opencl_vendors made;
  const std::string ours = libraries + "/" + std::string(own_library);
  if (::access(ours.c_str(), R_OK) != 0) return made;
  auto folder = make_temporary_folder("outboard-opencl");
  if (!folder.ok()) return failure(folder.error().message);
  made.folder_ = std::move(*folder);
  for (const auto& [name, library] : icd_files(::getenv("OCL_ICD_VENDORS")))
    OUTBOARD_TRY(made.add(name, library));
  OUTBOARD_TRY(made.add("outboard.icd", ours));
  OUTBOARD_TRY(made.start_remover());
  return made;
}

/// `outboard run` may be killed: what is left to do then is another process's, out of reach of signals to its
/// group.
status opencl_vendors::start_remover() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return failure("pipe: " + errno_text(errno));
  const unique_fd theirs(ends[0]);
  life_.reset(ends[1]);
  remover_ = ::fork();
  if (remover_ < 0) return failure("fork: " + errno_text(errno));
  if (remover_ > 0) return {};
  ::setsid();
  ::dup2(ends[0], STDIN_FILENO);
  ::close_range(STDOUT_FILENO, ~0U, 0);  // whoever reads our output must see its end with the program's
  char nothing = 0;
  while (::read(STDIN_FILENO, &nothing, 1) < 0 && errno == EINTR) {
  }
  remove();
  ::_exit(0);
}

void opencl_vendors::remove() const {
  for (const std::string& file : files_) ::unlink(file.c_str());
  if (!folder_.empty()) ::rmdir(folder_.c_str());
}

status opencl_vendors::add(const std::string& name, const std::string& library) {
  const std::string path = folder_ + "/" + name;
  files_.push_back(path);
  std::ofstream out(path);
  out << library << "\n";
  out.close();
  return out ? status{} : failure("cannot write " + path);
}

opencl_vendors::opencl_vendors(opencl_vendors&& other) noexcept
    : folder_(std::exchange(other.folder_, {})),
      files_(std::exchange(other.files_, {})),
      life_(std::move(other.life_)),
      remover_(std::exchange(other.remover_, -1)) {}

opencl_vendors& opencl_vendors::operator=(opencl_vendors&& other) noexcept {
  std::swap(folder_, other.folder_);
  std::swap(files_, other.files_);
  std::swap(life_, other.life_);
  std::swap(remover_, other.remover_);
  return *this;
}

opencl_vendors::~opencl_vendors() {
  life_.reset();
  if (remover_ > 0) {
    while (::waitpid(remover_, nullptr, 0) < 0 && errno == EINTR) {
    }
  } else {
    remove();
  }
}

}  // namespace outboard::tool
