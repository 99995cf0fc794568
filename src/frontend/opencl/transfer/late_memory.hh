// Memory of maps that the program unmapped before it learned that their bytes are here: the bytes may still
// come. Guarded by its owner.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace outboard::frontend {
class session;
}

namespace outboard::frontend::opencl {

class late_memory {
 public:
  late_memory() = default;
  /// Memory for which bytes may still come is leaked, so that they harm nothing.
  ~late_memory();
  late_memory(const late_memory&) = delete;
  late_memory& operator=(const late_memory&) = delete;

  /// `part`: where the bytes from this server will come. Memory that was kept earlier is freed if all of its
  /// bytes have come.
  void keep(std::unique_ptr<std::byte[]> memory, std::span<const std::byte> part, session& from);

 private:
  struct kept {
    std::unique_ptr<std::byte[]> memory;
    std::span<const std::byte> part;
    session* from;

    bool is_late() const;
  };
  std::vector<kept> all_;
};

}  // namespace outboard::frontend::opencl
