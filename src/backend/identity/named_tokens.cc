#include "backend/identity/named_tokens.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/file_bytes.hh"
#include "base/hex.hh"
#include "base/random.hh"
#include "base/utc_text.hh"

namespace outboard::backend {
namespace {

/// The first line of the file; a later form gets another number.
constexpr std::string_view form = "outboard-tokens 1";
constexpr std::size_t longest_name = 64;
/// Far more than a server has users; a larger file is not ours.
constexpr std::size_t most_tokens = 10000;

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

bool take_line(const std::string& line, named_token& out) {
  std::istringstream words(line);
  std::string id, stored, server, more;
  if (!(words >> out.name >> id >> stored >> server >> out.created >> out.expires) || words >> more)
    return false;
  return is_token_name(out.name) && out.created >= 0 && out.expires >= 0 && take_hex(id, out.verifier.id) &&
         take_hex(stored, out.verifier.stored) && take_hex(server, out.verifier.server);
}

std::string text_of(const std::vector<named_token>& tokens) {
  std::string text =
      std::string(form) + "\n# name, id, what checks a proof, what makes the server's, made, expires\n";
  for (const named_token& t : tokens) {
    for (const std::string& word : {t.name, hex(t.verifier.id), hex(t.verifier.stored),
                                    hex(t.verifier.server), std::to_string(t.created)})
      text += word + " ";
    text += std::to_string(t.expires) + "\n";
  }
  return text;
}

/// The server may run as another user than the one who makes tokens, who is root then: the file belongs to
/// the folder's owner.
bool hand_over(int fd, const std::string& folder) {
  struct stat about {};
  if (::stat(folder.c_str(), &about) != 0) return false;
  return ::geteuid() != 0 || ::fchown(fd, about.st_uid, about.st_gid) == 0;
}

status write_named_tokens(const std::string& path, const std::vector<named_token>& tokens) {
  const std::string folder = folder_of(path), fresh = path + "." + std::to_string(::getpid());
  const auto failed = [&](const char* what) {
    const std::string why = errno_text(errno);
    ::unlink(fresh.c_str());
    return failure("cannot " + std::string(what) + " " + path + ": " + why);
  };
  const unique_fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return failed("write");
  if (!write_whole(file.get(), text_of(tokens)) || !hand_over(file.get(), folder) || ::fsync(file.get()) != 0)
    return failed("write");
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failed("replace");
  // Else a loss of power might bring a revoked token back.
  const unique_fd kept(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!kept || ::fsync(kept.get()) != 0) return failed("keep");
  return {};
}

/// One process at a time changes the file: the lock is on its folder, because the file itself is replaced.
result<unique_fd> lock_folder(const std::string& path) {
  const std::string folder = folder_of(path);
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  unique_fd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return failure("cannot open the folder " + folder + ": " + errno_text(errno));
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return failure("cannot lock the folder " + folder + ": " + errno_text(errno));
  }
  return fd;
}

auto named(std::string_view name) {
  return [name](const named_token& t) { return t.name == name; };
}

}  // namespace

bool is_token_name(std::string_view name) {
  const auto good = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= longest_name && std::ranges::all_of(name, good);
}

std::string minute_text(std::int64_t seconds) {
  const std::string text = utc_text(seconds);
  return text.empty() ? "a time that no clock shows" : text;
}

result<std::vector<named_token>> read_named_tokens(const std::string& path) {
  std::vector<named_token> tokens;
  errno = 0;
  std::ifstream in(path);
  if (!in) {
    if (errno == ENOENT) return tokens;
    return failure("cannot read " + path + ": " + errno_text(errno));
  }
  std::string line;
  std::size_t number = 1;
  if (!std::getline(in, line) || line != form)
    return failure(path +
                   ":1: this is not a file of tokens that this version knows (its first line is not \"" +
                   std::string(form) + "\"); `outboard token create` makes one");
  while (std::getline(in, line)) {
    ++number;
    if (line.empty() || line[0] == '#') continue;
    named_token t;
    if (!take_line(line, t) || tokens.size() == most_tokens)
      return failure(path + ":" + std::to_string(number) +
                     ": this line is not a token's; `outboard token` writes this file");
    tokens.push_back(std::move(t));
  }
  if (in.bad()) return failure("cannot read " + path + " to its end: " + errno_text(errno));
  return tokens;
}

result<std::string> create_named_token(const std::string& path, std::string_view name,
                                       std::chrono::seconds lifetime) {
  if (!is_token_name(name))
    return failure("\"" + std::string(name) + "\" is no name for a token; it takes 1 to " +
                   std::to_string(longest_name) + " letters, digits, \".\", \"_\", \"-\"");
  auto lock = lock_folder(path);
  if (!lock.ok()) return std::move(lock).error();
  auto tokens = read_named_tokens(path);
  if (!tokens.ok()) return std::move(tokens).error();
  if (std::ranges::any_of(*tokens, named(name)))
    return failure("there is a token \"" + std::string(name) +
                   "\" already; end it first with `outboard token revoke " + std::string(name) + "`");
  std::string text = "ob-" + hex(random_value<std::array<std::byte, 32>>());
  const std::int64_t now = seconds_now();
  tokens->push_back({std::string(name), wire::verifier_of(std::as_bytes(std::span(text))), now,
                     lifetime.count() ? now + lifetime.count() : 0});
  OUTBOARD_TRY(write_named_tokens(path, *tokens));
  return text;
}

status revoke_named_token(const std::string& path, std::string_view name) {
  auto lock = lock_folder(path);
  if (!lock.ok()) return std::move(lock).error();
  auto tokens = read_named_tokens(path);
  if (!tokens.ok()) return std::move(tokens).error();
  if (std::erase_if(*tokens, named(name)) == 0)
    return failure("there is no token \"" + std::string(name) +
                   "\"; `outboard token list` shows those that exist");
  return write_named_tokens(path, *tokens);
}

}  // namespace outboard::backend
