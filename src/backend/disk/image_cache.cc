#include "backend/disk/image_cache.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "backend/disk/folder.hh"
#include "base/errno_text.hh"
#include "base/hex.hh"
#include "base/log.hh"
#include "marshal/cuda/image.hh"

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

/// One writer at a time, of all daemons: what lies under `unfinished` while one holds the lock is what
/// another left when it was killed.
constexpr const char* lock_file = ".lock";
constexpr const char* unfinished = ".new";
constexpr auto lock_patience = 2s;
constexpr std::size_t piece = 1u << 20;

/// A file's name begins with whose it is, of which nobody can tell who that is.
constexpr std::size_t owner_digits = 16, image_digits = 48;

bool is_hex(std::string_view text) { return text.find_first_not_of("0123456789abcdef") == text.npos; }

/// Names of versions that did not say whose it is have 64 digits.
bool keeps_an_image(std::string_view name) {
  if (name.size() == 64) return is_hex(name);
  return name.size() == owner_digits + 1 + image_digits && name[owner_digits] == '-' &&
         is_hex(name.substr(0, owner_digits)) && is_hex(name.substr(owner_digits + 1));
}

/// Those of older versions are nobody's, and so one's.
std::string_view owner_of(std::string_view name) {
  return name.size() == 64 ? std::string_view() : name.substr(0, owner_digits);
}

result<unique_fd> take_lock(int folder, const std::atomic<bool>& stop) {
  unique_fd lock(::openat(folder, lock_file, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return failure("cannot make its lock: " + errno_text(errno));
  const auto until = std::chrono::steady_clock::now() + lock_patience;
  while (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return failure("cannot lock it: " + errno_text(errno));
    if (stop.load() || std::chrono::steady_clock::now() > until)
      return outboard::error{action::retry, "another one writes for long"};
    std::this_thread::sleep_for(10ms);
  }
  return lock;
}

}  // namespace

std::string image_file(const image_scope& scope, const marshal::image_name& name) {
  static constexpr std::string_view whose = "whose";
  return hex(hmac_sha256(scope, std::as_bytes(std::span(whose)))).substr(0, owner_digits) + "-" +
         hex(hmac_sha256(scope, std::as_bytes(std::span(name)))).substr(0, image_digits);
}

result<image_cache> image_cache::open(const std::string& folder, std::uint64_t most_bytes) {
  auto opened = open_own_folder(folder);
  if (!opened.ok()) return std::move(opened).error();
  return image_cache(std::move(*opened), folder, most_bytes);
}

std::optional<found_image> image_cache::find(const image_scope& scope,
                                             const marshal::image_name& name) const {
  const std::string file = image_file(scope, name);
  const unique_fd fd(::openat(folder_.get(), file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!fd) return std::nullopt;
  found_image found;
  struct stat about {};
  const bool sound = ::fstat(fd.get(), &about) == 0 && S_ISREG(about.st_mode) &&
                     static_cast<std::uint64_t>(about.st_size) <= marshal::max_encoded_image_bytes;
  if (sound) found.bytes.resize(static_cast<std::size_t>(about.st_size));
  if (sound && read_all(fd.get(), found.bytes)) {
    found.key = marshal::key_of(found.bytes);
    if (marshal::name_of(found.key) == name) {
      ::futimens(fd.get(), nullptr);  // it was used
      return found;
    }
  }
  log::warn("module cache ", path_, ": ", file, " is damaged; it is thrown away");
  ::unlinkat(folder_.get(), file.c_str(), 0);
  return std::nullopt;
}

void image_cache::store(const image_scope& scope, std::span<const std::byte> image,
                        const std::atomic<bool>& stop) {
  if (image.size() > most_) return;
  const std::string file = image_file(scope, marshal::name_of(marshal::key_of(image)));
  const status kept = try_store(file, image, stop);
  if (kept.ok() || kept.error().next == action::retry || std::exchange(told_, true)) return;
  log::warn("module cache ", path_, ": ", kept.error().message, "; images are not kept");
}

status image_cache::try_store(const std::string& file, std::span<const std::byte> image,
                              const std::atomic<bool>& stop) {
  const auto lock = take_lock(folder_.get(), stop);
  if (!lock.ok()) return lock.error();
  if (::faccessat(folder_.get(), file.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) return {};
  ::unlinkat(folder_.get(), unfinished, 0);
  OUTBOARD_TRY(make_room(file, image.size()));
  const status written = write_new(file, image, stop);
  if (!written.ok()) ::unlinkat(folder_.get(), unfinished, 0);
  return written;
}

status image_cache::write_new(const std::string& file, std::span<const std::byte> image,
                              const std::atomic<bool>& stop) {
  const unique_fd fd(
      ::openat(folder_.get(), unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return failure("cannot write: " + errno_text(errno));
  while (!image.empty()) {
    if (stop.load()) return outboard::error{action::retry, "the session is over"};
    const ssize_t wrote = ::write(fd.get(), image.data(), std::min(piece, image.size()));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return failure("cannot write: " + errno_text(wrote < 0 ? errno : ENOSPC));
    image = image.subspan(static_cast<std::size_t>(wrote));
  }
  // Not synchronised: after a crash of the machine a file that is short is found so, as any other.
  if (::renameat(folder_.get(), unfinished, folder_.get(), file.c_str()) != 0)
    return failure("cannot rename: " + errno_text(errno));
  return {};
}

/// Who has most gives way first: else one that keeps ever more would have those of all others removed.
status image_cache::make_room(std::string_view file, std::uint64_t size) {
  auto files = list_folder(folder_.get());
  if (!files.ok()) return files.error();
  std::erase_if(*files, [](const folder_file& f) { return !keeps_an_image(f.name); });
  // The one used last comes first, so that the one to go is at the end.
  std::ranges::sort(*files, std::greater(), &folder_file::used);
  struct share {
    std::uint64_t bytes = 0;
    std::vector<const folder_file*> files = {};
  };
  std::map<std::string_view, share> owners;
  std::uint64_t all = size;
  owners[owner_of(file)].bytes = size;
  for (const folder_file& f : *files) {
    share& of = owners[owner_of(f.name)];
    of.bytes += f.size, all += f.size;
    of.files.push_back(&f);
  }
  while (all > most_) {
    std::erase_if(owners, [](const auto& owner) { return owner.second.files.empty(); });
    if (owners.empty()) return failure("what is in it cannot be removed");
    share& most = std::ranges::max_element(owners, {}, [](const auto& o) { return o.second.bytes; })->second;
    const folder_file& oldest = *most.files.back();
    most.files.pop_back();
    most.bytes -= oldest.size;
    if (::unlinkat(folder_.get(), oldest.name.c_str(), 0) == 0) all -= oldest.size;
  }
  return {};
}

}  // namespace outboard::backend
