// Bytes that show loss, doubling and reordering of a stream. For tests. No state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace outboard::transport::testing {

/// Byte i of the stream.
inline std::byte pattern(std::uint64_t i) { return static_cast<std::byte>((i * 2654435761u) >> 13); }

/// `size` bytes of the stream, from its byte `from` on.
inline std::vector<std::byte> patterned(std::size_t size, std::uint64_t from = 0) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = pattern(from + i);
  return bytes;
}

}  // namespace outboard::transport::testing
