// Inside of marshal's image code: the entries of a fatbin and the extent of a cubin, from hostile bytes. Free
// functions, any thread; nothing is copied except by entry_unpack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/result.hh"

namespace outboard::marshal {

inline constexpr std::uint32_t fatbin_wrapper_magic = 0x466243b1;
inline constexpr std::uint32_t fatbin_magic = 0xba55ed50;
inline constexpr std::size_t fatbin_header_bytes = 16;

/// Precondition: `offset + sizeof(T) <= bytes.size()`.
template <class T>
T load(std::span<const std::byte> bytes, std::uint64_t offset) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

enum class entry_kind : std::uint8_t { ptx, cubin, lto, other };
enum class entry_packing : std::uint8_t { none, lz4, zstd };

struct fatbin_entry {
  entry_kind kind = entry_kind::other;
  entry_packing packing = entry_packing::none;
  std::uint32_t capability = 0;        ///< 90 for sm_90 and compute_90
  bool arch_specific = false;          ///< sm_90a
  bool family_specific = false;        ///< sm_100f
  std::span<const std::byte> whole;    ///< header, options and padding, as they stand
  std::span<const std::byte> payload;  ///< as it stands, perhaps compressed
  std::uint64_t unpacked_size = 0;     ///< what the header says
};

/// Bytes of the fatbin that starts `bytes`, header included; they may be followed by something else.
result<std::uint64_t> fatbin_extent(std::span<const std::byte> bytes);

/// Bytes of the cubin that starts `bytes`: the end of its last header, section or segment.
result<std::uint64_t> cubin_extent(std::span<const std::byte> bytes);

/// All entries of the fatbin that starts `bytes`.
result<std::vector<fatbin_entry>> fatbin_entries(std::span<const std::byte> bytes);

/// The PTX text or the cubin of an entry. `limit` bounds the memory.
result<std::vector<std::byte>> entry_unpack(const fatbin_entry& entry, std::uint64_t limit);

}  // namespace outboard::marshal
