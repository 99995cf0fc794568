// Memory of maps that the program released before it knew that their bytes had arrived: they may still come.
// Its owner guards it.
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
  /// Memory for which bytes may still come is leaked.
  ~late_memory();
  late_memory(const late_memory&) = delete;
  late_memory& operator=(const late_memory&) = delete;

  /// `part`: where bytes come, from this server. Frees earlier memory whose bytes have all arrived.
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
