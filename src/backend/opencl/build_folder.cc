#include "backend/opencl/build_folder.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/file_bytes.hh"
#include "base/log.hh"
#include "base/temporary_folder.hh"
#include "marshal/opencl/build_files.hh"

namespace outboard::backend::opencl {
namespace {

/// Of all builds at once: a client has as many lanes as it has threads.
constexpr std::uint64_t most_placed = 2 * marshal::opencl::most_build_file_bytes;

status make_folders(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  return code ? status(failure("cannot make " + path + ": " + code.message())) : status();
}

/// Nothing else is ever made below the folder than folders and these files: no link leads out.
status write_file(const std::string& path, const std::vector<std::byte>& bytes) {
  const unique_fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return failure("cannot make " + path + ": " + errno_text(errno));
  if (write_whole(fd.get(), {reinterpret_cast<const char*>(bytes.data()), bytes.size()})) return {};
  return failure("cannot write " + path + ": " + errno_text(errno));
}

}  // namespace

build_folder::~build_folder() { clear(); }

bool build_folder::agrees(const files_of_build& wanted) const {
  if (inside_ == 0) return true;
  std::uint64_t more = 0;
  for (const auto& [path, contents] : wanted.files) {
    const auto found = placed_.find(path);
    if (found == placed_.end()) {
      more += contents->size();
    } else if (found->second != contents && *found->second != *contents) {
      return false;
    }
  }
  return wanted.here == here_ && more <= most_placed - std::min(bytes_, most_placed);
}

result<build_folder::stay> build_folder::enter(const files_of_build& wanted) {
  const std::lock_guard next(door_);
  std::unique_lock lock(mutex_);
  left_.wait(lock, [&] { return agrees(wanted); });
  ++inside_;
  status placed = place(wanted);
  if (!placed.ok()) {
    lock.unlock();
    leave();
    return std::move(placed).error();
  }
  return stay(*this);
}

status build_folder::place(const files_of_build& wanted) {
  if (folder_.empty()) {
    auto made = make_temporary_folder("outboard-build");
    if (!made.ok()) return std::move(made).error();
    folder_ = std::move(*made);
    here_ = wanted.here;
    std::error_code code;
    before_ = std::filesystem::current_path(code);
  }
  const std::string root = folder_ + "/" + std::string(marshal::opencl::client_files);
  OUTBOARD_TRY(make_folders(folder_ + "/" + wanted.set_name));
  OUTBOARD_TRY(make_folders(root + here_));
  for (const std::string& path : wanted.folders) OUTBOARD_TRY(make_folders(root + path));
  for (const auto& [path, contents] : wanted.files) {
    if (placed_.count(path)) continue;
    OUTBOARD_TRY(make_folders(root + path.substr(0, path.rfind('/'))));
    OUTBOARD_TRY(write_file(root + path, *contents));
    placed_.emplace(path, contents);
    bytes_ += contents->size();
  }
  // Compilers look for relative names from here: the process's other threads name no file by such a name.
  if (::chdir((root + here_).c_str()) != 0)
    return failure("cannot enter " + root + here_ + ": " + errno_text(errno));
  return {};
}

void build_folder::leave() {
  {
    const std::lock_guard lock(mutex_);
    if (--inside_ == 0) clear();
  }
  left_.notify_all();
}

void build_folder::clear() {
  if (folder_.empty()) return;
  std::error_code code;
  std::filesystem::current_path(before_, code);
  if (code) log::warn("cannot go back to ", before_, ": ", code.message());
  std::filesystem::remove_all(folder_, code);
  if (code) log::warn("cannot remove ", folder_, ": ", code.message());
  folder_.clear();
  placed_.clear();
  bytes_ = 0;
}

std::string build_folder::stay::without_folder(std::string text) const {
  const std::string its = in_->folder_ + "/";  // it stays what it is while somebody is inside
  for (std::size_t at = 0; (at = text.find(its, at)) != std::string::npos;) text.erase(at, its.size());
  return text;
}

}  // namespace outboard::backend::opencl
