// Memory files that processes of the cpu device share: sealed files, of which a process may have
// thousands. Any thread.
#pragma once

#include <cstdint>

#include "base/fd.hh"

namespace outboard::device::cpu {

/// No descriptor: none is left, or no memory.
unique_fd make_shared_file(std::uint64_t size, const char* name);

/// A mapping of a whole shared file; gone with the object.
class shared_mapping {
 public:
  shared_mapping() = default;
  shared_mapping(shared_mapping&& other) noexcept;
  shared_mapping& operator=(shared_mapping&& other) noexcept;
  ~shared_mapping();

  /// Empty (begin() 0) where it cannot be had. `near`: a wish, 0 for none.
  static shared_mapping of(int fd, std::uint64_t size, std::uint64_t near = 0);

  std::uint64_t begin() const { return begin_; }
  std::uint64_t size() const { return size_; }

 private:
  std::uint64_t begin_ = 0, size_ = 0;
};

}  // namespace outboard::device::cpu
