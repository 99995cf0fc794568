// The audit file: who did what to whom, one line of JSON each, apart from the log (docs/command.md, "Audit").
// Each session and each act of an administrator has a line; what strangers can do as often as they like is
// limited by source. Owned by the daemon; its one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/daemon/bounds/bounded_log.hh"
#include "base/fd.hh"
#include "base/log_fields.hh"
#include "base/result.hh"

namespace outboard::backend {

using audit_fields = std::vector<log::field>;

class audit_file {
 public:
  /// Writes nothing as long as it has no file. `loop` outlives it.
  explicit audit_file(event_loop& loop);

  /// Made where it is missing, for its owner alone; of no path none. An error: it is no regular file, or
  /// others may write it, or we may not.
  static result<unique_fd> open(const std::string& path);
  /// Lines go there from now on; none: nowhere.
  void take(std::string path, unique_fd file);

  /// Texts may be any bytes, of any length: their beginning is written, and nothing that a terminal or a
  /// reader of lines would follow. `claims` is what a client says of itself and nobody vouches for.
  void write(std::string_view event, const audit_fields& fields, const audit_fields& claims = {});
  /// The same of something that costs who does it nothing: of each source (bounded_log.hh) some lines, then a
  /// line a second that counts.
  void write_some(const std::string& source, std::string_view event, const audit_fields& fields,
                  const audit_fields& claims = {});

 private:
  void begin_anew_if_moved();
  void put(std::string line);

  std::string path_;
  unique_fd file_;
  dev_t device_ = 0;  ///< of file_
  ino_t inode_ = 0;
  bool torn_ = false;       ///< the last line was written in part
  std::uint64_t lost_ = 0;  ///< lines that could not be written since one was
  std::string told_;        ///< why, as the log has it
  bounded_log bounds_;      ///< it reports when it ends: the last of all
};

/// Who writes into it, if there is one; a value.
class auditor {
 public:
  auditor() = default;
  explicit auditor(audit_file& file) : file_(&file) {}

  void write(std::string_view event, const audit_fields& fields, const audit_fields& claims = {}) const {
    if (file_) file_->write(event, fields, claims);
  }
  void write_some(const std::string& source, std::string_view event, const audit_fields& fields,
                  const audit_fields& claims = {}) const {
    if (file_) file_->write_some(source, event, fields, claims);
  }

 private:
  audit_file* file_ = nullptr;
};

/// "user 1000", of a process that the kernel names by number.
std::string person_of(uid_t user);

}  // namespace outboard::backend
