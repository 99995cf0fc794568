// Which contents of the client's files a back-end already has and keeps for this session, so that a header
// that a hundred builds include travels once. Own lock; any thread.
#pragma once

#include <map>
#include <mutex>
#include <span>

#include "marshal/opencl/build_files.hh"

namespace outboard::frontend::opencl {

class sent_files {
 public:
  /// How the bytes with this digest travel now.
  marshal::opencl::file_bytes way_for(const sha256_digest& of, std::uint64_t size) {
    using marshal::opencl::file_bytes;
    const std::lock_guard lock(mutex_);
    const auto found = all_.find(of);
    if (found != all_.end()) return found->second ? file_bytes::known : file_bytes::kept;
    // The count never decreases: the server counts what it keeps, and never gives any of it back.
    if (size > marshal::opencl::most_kept_file_bytes - bytes_) return file_bytes::once;
    bytes_ += size;
    all_.emplace(of, false);
    return file_bytes::kept;
  }
  /// A build has been answered: the server has what it was to keep.
  void arrived(std::span<const marshal::opencl::build_file> files) {
    const std::lock_guard lock(mutex_);
    for (const auto& file : files) {
      if (file.bytes == marshal::opencl::file_bytes::kept) all_[file.digest] = true;
    }
  }

 private:
  std::mutex mutex_;                   // guards the others
  std::map<sha256_digest, bool> all_;  // counted; has it arrived?
  std::uint64_t bytes_ = 0;
};

}  // namespace outboard::frontend::opencl
