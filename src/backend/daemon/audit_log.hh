// The record of acts and who did them to whom, apart from the log: one JSON object a line in a file that only
// its owner may read. Each line is one write at the file's end, so a rotated file loses none: it is opened
// again on reload. Owned by the daemon; its one thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "backend/daemon/bounds/bucket.hh"
#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::backend {

class audit_log {
 public:
  /// The one that acts: the credential's name, its identity, and where the connection comes from.
  struct actor {
    std::string credential, identity, from;
  };
  using detail = std::pair<std::string_view, std::string>;

  /// Without a file nothing is written.
  audit_log() = default;

  /// Opens the file, or makes it with mode 0600. Empty: from now on nothing is written. An error leaves what
  /// was open as it was.
  status open(const std::string& path);

  /// `did` in words: "began a session". A disk that is full costs lines, and one line in the log.
  void write(const actor& who, std::string_view did, std::initializer_list<detail> details = {});
  /// For what a tenant can do any number of times: 64 lines at once and 4 a second; the next one says how
  /// many were left out.
  void write_at_most(const actor& who, std::string_view did, std::string_view name, const std::string& value);

 private:
  std::string path_;
  unique_fd file_;
  bool failed_ = false;
  bucket often_{64, 4};
  std::uint64_t left_out_ = 0;
};

}  // namespace outboard::backend
