// A resumable stream travels in records: a header of 16 bytes, then bytes of the stream. Each header says how
// much of the other direction has arrived, so acknowledgements cost no messages of their own where both sides
// send. See docs/wire.md. Values; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace outboard::transport {

enum class record_kind : std::uint32_t {
  bytes = 1,     ///< `size` bytes of the stream follow
  news = 2,      ///< nothing follows: what has arrived, and that the sender is alive
  farewell = 3,  ///< nothing follows, ever: the stream ends in order
};

struct record {
  std::uint64_t arrived = 0;  ///< bytes of the other direction that need not be sent again
  std::uint32_t size = 0;
  record_kind kind = record_kind::news;
};

inline constexpr std::size_t record_header = 16;
/// Larger sends are several records. A reader keeps no record: the limit finds streams that are out of step.
inline constexpr std::uint32_t most_in_record = 1u << 26;

std::array<std::byte, record_header> encode(const record& r);
/// Nothing: no honest peer sends this.
std::optional<record> decode_record(std::span<const std::byte, record_header> in);

}  // namespace outboard::transport
