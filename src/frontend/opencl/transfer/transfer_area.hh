// Memory that this process and the back-end's worker both have: bytes of commands that are in it need not
// travel, and the device reads and writes it by itself. Any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "frontend/opencl/objects.hh"
#include "frontend/opencl/transfer/map_room.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::frontend::opencl {

class transfer_area {
 public:
  /// For commands of this context; asks the server and waits. `block`: see area_body. nullptr: there is none
  /// to be had.
  static std::unique_ptr<transfer_area> open(cl_context context, std::uint64_t size, std::uint64_t block);
  /// The program no longer reads it; commands under way may still use it. The context lives.
  ~transfer_area();
  transfer_area(const transfer_area&) = delete;
  transfer_area& operator=(const transfer_area&) = delete;

  std::byte* at(std::uint64_t offset) const { return data_ + offset; }
  std::uint64_t size() const { return size_; }
  marshal::opencl::area_place place(std::uint64_t offset) const { return {number_, offset}; }

 private:
  transfer_area(cl_context context, std::uint64_t number, std::uint64_t size)
      : context_(context), number_(number), size_(size) {}

  const cl_context context_;
  const std::uint64_t number_, size_;
  std::byte* data_ = nullptr;
};

/// Blocks of an area through which a context's transfers pass, one transfer at a time.
struct staging_blocks {
  static constexpr unsigned count = 16;
  static constexpr std::uint64_t largest = 1u << 20;  ///< bytes of a block

  staging_blocks(std::uint64_t size, std::uint64_t worth) : block(size), worth_opening(worth) {}

  const std::uint64_t block;          ///< bytes of each
  const std::uint64_t worth_opening;  ///< bytes after which it is
  std::mutex use;                     ///< held by the transfer; guards what follows
  std::unique_ptr<transfer_area> area;
  bool refused = false;
  std::uint64_t wanted = 0;  ///< bytes that would have passed so far
  std::uint64_t busy = 0;    ///< a bit for each block that a command may use
  unsigned next = 0;
};

/// The same bytes of a buffer for all its maps, once these have shown as much as the buffer has: a driver
/// keeps such memory, too. The server's as well, or this process's alone.
struct map_memory {
  static constexpr std::uint64_t least = 256u << 10;
  std::mutex use;  ///< guards what follows
  std::unique_ptr<transfer_area> area;
  std::unique_ptr<map_room> room;
  bool refused = false;
  std::uint64_t shown = 0;  ///< bytes
};

}  // namespace outboard::frontend::opencl
