#include "transport/tls/known_servers.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>

#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/file_bytes.hh"

namespace outboard::transport::tls {
namespace {

/// Ten thousand servers.
constexpr std::size_t most_bytes = 1u << 20;

constexpr std::string_view blanks = " \t\r";

std::string_view next_word(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.size(), rest.find_first_not_of(blanks)));
  const std::string_view word = rest.substr(0, rest.find_first_of(blanks));
  rest.remove_prefix(word.size());
  return word;
}

/// Not by std::filesystem, which needs a newer C library than programs may have.
void make_folders(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != path.npos; slash = path.find('/', slash + 1))
    (void)::mkdir(path.substr(0, slash).c_str(), 0700);
}

}  // namespace

std::vector<known_server> find_known(std::string_view text, std::string_view server) {
  std::vector<known_server> found;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (next_word(line) != server) continue;
    const std::string_view fingerprint = next_word(line);
    if (fingerprint.starts_with("SHA256:")) found.push_back({std::string(fingerprint), number});
  }
  return found;
}

std::string line_of_known(std::string_view server, std::string_view fingerprint) {
  return std::string(server).append(" ").append(fingerprint);
}

std::string default_known_servers() {
  const auto folder = [](const char* variable) -> std::string {
    const char* value = std::getenv(variable);
    return value && value[0] == '/' ? value : "";
  };
  if (const std::string configuration = folder("XDG_CONFIG_HOME"); !configuration.empty())
    return configuration + "/outboard/known_servers";
  const std::string home = folder("HOME");
  return home.empty() ? "" : home + "/.config/outboard/known_servers";
}

result<std::string> read_known(const std::string& path) {
  const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file && (errno == ENOENT || errno == ENOTDIR)) return std::string();
  if (!file) return failure("cannot read " + path + ": " + errno_text(errno));
  return read_whole(file.get(), path, most_bytes);
}

status add_known(const std::string& path, std::string_view server, std::string_view fingerprint) {
  make_folders(path);
  const unique_fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file || ::flock(file.get(), LOCK_EX) != 0)
    return failure("cannot write " + path + ": " + errno_text(errno));
  auto text = read_whole(file.get(), path, most_bytes);
  if (!text.ok()) return std::move(text).error();
  for (const known_server& one : find_known(*text, server))
    if (one.fingerprint == fingerprint) return {};
  std::string line = text->empty() || text->back() == '\n' ? "" : "\n";
  line += line_of_known(server, fingerprint) + "\n";
  if (::write(file.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return failure("cannot write " + path + ": " + errno_text(errno));
  return {};
}

}  // namespace outboard::transport::tls
