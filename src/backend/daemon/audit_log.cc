#include "backend/daemon/audit_log.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/clean_line.hh"
#include "base/errno_text.hh"
#include "base/log.hh"

namespace outboard::backend {

status audit_log::open(const std::string& path) {
  if (path.empty()) {
    path_.clear();
    file_.reset();
    return {};
  }
  constexpr int how = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  unique_fd file(::open(path.c_str(), how, 0600));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0)
    return failure(fmt::format("audit_file: cannot open {}: {}", path, errno_text(errno)));
  if (!S_ISREG(about.st_mode)) return failure(fmt::format("audit_file: {} is not a regular file", path));
  if ((about.st_mode & 077) != 0)
    return failure(fmt::format("audit_file: {} may be read by others; run: chmod 600 {}", path, path));
  path_ = path;
  file_ = std::move(file);
  failed_ = false;
  return {};
}

void audit_log::write(const actor& who, std::string_view did, std::initializer_list<detail> details) {
  if (!file_) return;
  const auto now = std::chrono::system_clock::now();
  const auto thousandths =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  const std::tm parts = fmt::gmtime(std::chrono::system_clock::to_time_t(now));
  nlohmann::ordered_json line{{"time", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", parts, thousandths)},
                              {"credential", who.credential},
                              {"identity", who.identity},
                              {"from", who.from},
                              {"did", did}};
  for (const auto& [name, value] : details) line[std::string(name)] = clean_line(value);
  const std::string text = line.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
  const ssize_t written = ::write(file_.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) {
    failed_ = false;
    return;
  }
  if (std::exchange(failed_, true)) return;
  log::error("audit lines are lost: cannot write ", path_, ": ",
             written < 0 ? errno_text(errno) : "no space left");
}

void audit_log::write_at_most(const actor& who, std::string_view did, std::string_view name,
                              const std::string& value) {
  if (!file_) return;
  if (!often_.take(bucket::clock::now())) {
    ++left_out_;
    return;
  }
  write(who, did, {{name, value}, {"left_out", fmt::to_string(std::exchange(left_out_, 0))}});
}

}  // namespace outboard::backend
