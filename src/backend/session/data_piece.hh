// A piece of a large copy in its worker: its bytes on their way between a data connection and a device, in
// memory that an API has for that. Whoever has the piece at hand owns it and is the only one to use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace outboard::backend {

/// A copy of so many bytes into a reply costs less than a frame of their own.
inline constexpr std::size_t goes_with_reply = 8u << 10;

class data_piece {
 public:
  virtual ~data_piece() = default;  ///< the memory goes back
  data_piece(const data_piece&) = delete;
  data_piece& operator=(const data_piece&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }
  /// Until the device has put the bytes there. 0 or the API's code.
  virtual std::int32_t await() = 0;

 protected:
  explicit data_piece(std::span<std::byte> bytes) : bytes_(bytes) {}

 private:
  const std::span<std::byte> bytes_;
};

/// Where the pieces of an API's copies lie. Any thread.
class piece_memory {
 public:
  virtual ~piece_memory() = default;

  /// Before the connections of a context, on the lane that opens them: what each of their threads does first.
  /// Empty: there is no such context.
  virtual std::function<void()> enter(std::uint64_t context) = 0;
  /// For bytes that come; on a thread that has entered. nullptr: there is no memory.
  virtual std::unique_ptr<data_piece> take(std::size_t size, std::uint64_t context) = 0;
};

}  // namespace outboard::backend
