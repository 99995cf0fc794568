#include "backend/daemon/audit.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/errno_text.hh"
#include "base/utc_text.hh"

namespace outboard::backend {
namespace {

using nlohmann::ordered_json;

/// As lists show texts of clients; a line has some fifteen of them, and a byte takes six at most.
constexpr std::size_t most_of_a_text = 256;

std::string now_text() {
  using namespace std::chrono;
  const auto now = duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
  char part[8];
  std::snprintf(part, sizeof part, ".%03dZ", static_cast<int>(now % 1000));
  return utc_text(now / 1000, "%Y-%m-%dT%H:%M:%S") + part;
}

void add(ordered_json& to, const audit_fields& fields) {
  for (const auto& [name, value] : fields) {
    const auto* const text = std::get_if<std::string>(&value);
    if (text && text->size() > most_of_a_text) {
      to[std::string(name)] = text->substr(0, most_of_a_text) + "...";
    } else {
      std::visit([&, to_name = std::string(name)](const auto& v) { to[to_name] = v; }, value);
    }
  }
}

/// All but ASCII is escaped: it is one line whatever is in it, and can be read back.
std::string line_of(std::string_view event, const audit_fields& fields, const audit_fields& claims) {
  ordered_json line{{"time", now_text()}, {"event", event}};
  add(line, fields);
  if (!claims.empty()) {
    line["claims"] = ordered_json::object();
    add(line["claims"], claims);
  }
  return line.dump(-1, ' ', true, ordered_json::error_handler_t::replace);
}

}  // namespace

audit_file::audit_file(event_loop& loop)
    : bounds_(loop, {}, [this](std::uint64_t count, std::string_view source) {
        write("left-out", {{"count", static_cast<std::int64_t>(count)}, {"source", std::string(source)}});
      }) {}

result<unique_fd> audit_file::open(const std::string& path) {
  if (path.empty()) return unique_fd();
  const auto problem = [&](const std::string& why) {
    return failure("audit_file: " + path + " cannot be written: " + why);
  };
  // Whoever opens a pipe waits for its reader; a link may lead anywhere.
  unique_fd file(::open(path.c_str(),
                        O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY,
                        S_IRUSR | S_IWUSR));
  if (!file) return problem(errno_text(errno));
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return problem(errno_text(errno));
  if (!S_ISREG(about.st_mode)) return problem("it is no regular file");
  if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return problem("others may write it; run: chmod go-w " + path);
  return file;
}

void audit_file::take(std::string path, unique_fd file) {
  path_ = std::move(path);
  file_ = std::move(file);
  struct stat ours {};
  (void)::fstat(file_.get(), &ours);  // of one that open() made it cannot fail
  device_ = ours.st_dev;
  inode_ = ours.st_ino;
  torn_ = false;
  told_.clear();
}

void audit_file::write(std::string_view event, const audit_fields& fields, const audit_fields& claims) {
  if (file_) put(line_of(event, fields, claims));
}

void audit_file::write_some(const std::string& source, std::string_view event, const audit_fields& fields,
                            const audit_fields& claims) {
  if (file_ && bounds_.may_write(source)) write(event, fields, claims);
}

/// Programs that rotate logs move the file away; what comes next belongs into a new one.
void audit_file::begin_anew_if_moved() {
  struct stat there {};
  if (::lstat(path_.c_str(), &there) == 0 && there.st_dev == device_ && there.st_ino == inode_) return;
  auto fresh = open(path_);
  if (fresh.ok()) return take(path_, std::move(*fresh));
  // Lines are better in the old one than nowhere.
  if (std::exchange(told_, fresh.error().message) != told_) log::error(told_);
}

void audit_file::put(std::string line) {
  begin_anew_if_moved();
  if (lost_ != 0) {
    const auto count = static_cast<std::int64_t>(lost_);
    line = line_of("lost", {{"count", count}}, {}) + "\n" + line;
  }
  line += '\n';
  if (torn_) line.insert(line.begin(), '\n');
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) {
    if (lost_ != 0) log::warn(path_, " can be written again; ", lost_, " lines of the audit are lost");
    lost_ = 0;
    torn_ = false;
    return;
  }
  const std::string why = written < 0 ? errno_text(errno) : "there is no room for a whole line";
  torn_ = torn_ || written > 0;
  if (lost_++ == 0) log::error("the audit's lines are lost until ", path_, " can be written: ", why);
}

std::string person_of(uid_t user) { return "user " + std::to_string(user); }

}  // namespace outboard::backend
