#include "backend/gate/server_key.hh"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/file_bytes.hh"
#include "transport/tls/pem_file.hh"

namespace outboard::backend {
namespace {

std::string own_host() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "outboard";
}

/// Writes next to `path` and then gives it that name, unless another server was faster.
status write_new(const std::string& path, const std::string& text) {
  std::string draft = path + ".XXXXXX";
  const unique_fd file(::mkostemp(draft.data(), O_CLOEXEC));  // mode 0600
  const bool written = file &&
                       ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       ::fsync(file.get()) == 0;
  const bool named = written && (::link(draft.c_str(), path.c_str()) == 0 || errno == EEXIST);
  const int code = errno;
  (void)::unlink(draft.c_str());
  if (named) return {};
  return failure("cannot keep the server's key at " + path + ": " + errno_text(code) +
                 "; name another place with [certificates] own_key");
}

}  // namespace

result<std::string> own_certificate(transport::tls::library& by, const std::string& path) {
  if (path.empty())
    return failure("no place for the server's key is known; name one with [certificates] own_key");
  struct stat about {};
  unique_fd file = transport::tls::open_pem(path, about);
  if (!file && errno == ENOENT) {
    std::error_code failed;
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    if (std::filesystem::create_directories(folder, failed)) (void)::chmod(folder.c_str(), 0700);
    auto made = by.make_certificate(own_host());
    if (!made.ok()) return std::move(made).error();
    OUTBOARD_TRY(write_new(path, *made));
    file = transport::tls::open_pem(path, about);
  }
  if (!file) return failure("cannot read the server's key " + path + ": " + errno_text(errno));
  if ((about.st_mode & 077) != 0 || (about.st_uid != ::geteuid() && about.st_uid != 0))
    return failure("the server's key " + path +
                   " may be read by others; its mode must be 0600 and its owner this user");
  return read_whole(file.get(), path, transport::tls::most_of_pem);
}

}  // namespace outboard::backend
