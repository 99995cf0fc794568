// Handle values: {index, generation} + kind in 64 bits. They look like an aligned, non-canonical pointer, so
// a program that dereferences one faults at once. Never 0, 1, 2 or all-ones. Bits: 0-3 zero (PyTorch keeps
// flags in the low bit of a stream pointer), 4-31 index, 32-51 generation, 52-58 kind, 59 minted by the
// worker, 60-63 zero. Knows no API: kind is a number from 1 to 127. Values.
#pragma once

#include <compare>
#include <cstdint>

namespace outboard::wire {

struct handle {
  std::uint64_t value = 0;

  static constexpr std::uint32_t max_index = (1u << 28) - 1;
  static constexpr std::uint32_t max_generation = (1u << 20) - 1;

  static constexpr handle make(std::uint8_t kind, std::uint32_t index, std::uint32_t generation,
                               bool minted = false) {
    return {(static_cast<std::uint64_t>(index & max_index) << 4) |
            (static_cast<std::uint64_t>(generation & max_generation) << 32) |
            (static_cast<std::uint64_t>(kind & 0x7f) << 52) | (minted ? 1ull << 59 : 0)};
  }

  constexpr std::uint8_t kind() const { return (value >> 52) & 0x7f; }
  constexpr std::uint32_t index() const { return static_cast<std::uint32_t>(value >> 4) & max_index; }
  constexpr std::uint32_t generation() const {
    return static_cast<std::uint32_t>(value >> 32) & max_generation;
  }
  constexpr bool minted() const { return (value >> 59) & 1; }
  constexpr explicit operator bool() const { return value != 0; }
  /// Is this a value that make() can return? (A peer or a program may pass anything.)
  constexpr bool well_formed() const {
    return (value & 0xf) == 0 && (value >> 60) == 0 && kind() != 0 && generation() != 0;
  }
  friend constexpr auto operator<=>(handle, handle) = default;
};

}  // namespace outboard::wire
