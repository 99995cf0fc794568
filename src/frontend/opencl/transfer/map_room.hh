// Memory of this process that shows a buffer to all its maps, if it shares none with the server: fresh pages
// for each map would cost more than the link. Owned by what the front-end remembers of the buffer; any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace outboard::frontend {
class session;
}

namespace outboard::frontend::opencl {

class map_room {
 public:
  /// nullptr: there is no memory, or all of them together would have more than a quarter of this machine's.
  static std::unique_ptr<map_room> take(std::uint64_t size);
  ~map_room();
  map_room(const map_room&) = delete;
  map_room& operator=(const map_room&) = delete;

  std::byte* at(std::uint64_t offset) const { return data_ + offset; }

 private:
  map_room(std::byte* data, std::size_t size, session* server) : data_(data), size_(size), server_(server) {}

  std::byte* const data_;
  const std::size_t size_;
  session* const server_;  // whose bytes it shows; null: nothing can come any more
};

}  // namespace outboard::frontend::opencl
