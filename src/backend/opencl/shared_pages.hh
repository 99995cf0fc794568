// Memory of this process that its client has, too: pages that belong to one sealed file, in which a byte's
// offset is its address here. So one descriptor serves for all blocks, and nobody keeps a book of offsets.
// Owned by the session; with its turn.
#pragma once

#include <cstdint>

#include "base/fd.hh"

namespace outboard::backend::opencl {

class shared_pages {
 public:
  /// Tries it with a page. False: this process cannot, and the log says why.
  bool open();
  bool is_open() const { return static_cast<bool>(file_); }
  int file() const { return file_.get(); }

  /// From here on the pages are the file's, and zero: what the process had there before is not the client's
  /// to see. False: something lies there that is not ordinary memory of this process, which a device may know
  /// by its pages.
  bool share(std::uint64_t address, std::uint64_t size);
  /// Ordinary memory again, which the client does not see. False: not to be had, so nobody else may use that
  /// memory.
  [[nodiscard]] bool take_back(std::uint64_t address, std::uint64_t size);

 private:
  bool is_ordinary(std::uint64_t address, std::uint64_t size) const;

  unique_fd file_, map_;  // map_: /proc/self/maps, opened while files may be
};

}  // namespace outboard::backend::opencl
