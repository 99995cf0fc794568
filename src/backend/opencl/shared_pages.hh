// Memory of this process that its client maps, too: pages of one sealed file, in which the offset of a byte
// is its address here. So one descriptor serves all blocks, and no table of offsets is needed. Owned by the
// session; called with its turn.
#pragma once

#include <cstdint>

#include "base/fd.hh"

namespace outboard::backend::opencl {

class shared_pages {
 public:
  /// Tries this out with one page. False: this process cannot do it; the log says why.
  bool open();
  bool is_open() const { return static_cast<bool>(file_); }
  int file() const { return file_.get(); }

  /// From now on the pages belong to the file, and are zero, because the client must not see what the process
  /// had there before. False: something lies there that is not ordinary memory of this process, so a device
  /// may hold references to its pages.
  bool share(std::uint64_t address, std::uint64_t size);
  /// Makes the pages ordinary memory again, which the client does not see. False: this failed, so the memory
  /// must not be used for anything else.
  [[nodiscard]] bool take_back(std::uint64_t address, std::uint64_t size);

 private:
  bool is_ordinary(std::uint64_t address, std::uint64_t size) const;

  unique_fd file_, map_;  // map_: /proc/self/maps, opened while files may be
};

}  // namespace outboard::backend::opencl
