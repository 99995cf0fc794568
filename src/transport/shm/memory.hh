// The mapped memory of two rings: a sealed file without a name, which the server makes and hands to the
// client. Neither end can shrink it, so nothing that the other end does with it causes an access fault. Owned
// by the connection; a forked child does not inherit it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/fd.hh"
#include "base/result.hh"
#include "transport/shm/layout.hh"

namespace outboard::transport::shm {

struct ring_sizes {
  /// Room for the posts of a program that runs ahead of the device (some 32,000 launches) ...
  std::uint64_t up = 8u << 20;
  /// ... and for replies and copied bytes, which the client reads at once.
  std::uint64_t down = 2u << 20;
};

class memory {
 public:
  /// Makes new memory and the descriptor to hand over.
  static result<std::pair<memory, unique_fd>> make(const ring_sizes& sizes);
  /// Maps memory that a peer made; refuses it unless it is like what make() makes.
  static result<memory> adopt(int fd);

  memory(memory&& other) noexcept;
  memory& operator=(memory&&) = delete;
  ~memory();

  shared_words& words() const { return *static_cast<shared_words*>(base_); }
  std::span<std::byte> up() const { return part(0, sizes_.up); }
  std::span<std::byte> down() const { return part(sizes_.up, sizes_.down); }

 private:
  memory(void* base, std::size_t size, const ring_sizes& sizes) : base_(base), size_(size), sizes_(sizes) {}
  static result<memory> map(int fd, std::size_t size);
  std::span<std::byte> part(std::uint64_t offset, std::uint64_t size) const {
    return std::span(static_cast<std::byte*>(base_), size_)
        .subspan(header_bytes + static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }

  void* base_ = nullptr;
  std::size_t size_ = 0;
  ring_sizes sizes_;
};

}  // namespace outboard::transport::shm
