// The container nvcc puts device code into: wrapper (0x466243b1) -> fatbin (0xBA55ED50) -> entries (PTX, ELF,
// LTO). Free functions without state, any thread. Everything except `wrapper_fatbins` takes bytes of a
// stranger: every size is checked against the bytes at hand and against a limit before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"

namespace outboard::ptx {

inline constexpr std::uint32_t wrapper_magic = 0x466243b1;
inline constexpr std::uint32_t fatbin_magic = 0xBA55ED50;
/// The largest PTX seen (cuFFT callbacks, cub instances) is below 40 MB.
inline constexpr std::uint64_t max_ptx_bytes = 256u << 20;

enum class entry_kind { ptx, elf, lto, other };
enum class compression { none, lz4, zstd };

/// One image of a fatbin; `payload` points into the bytes that were parsed.
struct fatbin_entry {
  entry_kind kind = entry_kind::other;
  compression packed = compression::none;
  std::uint32_t capability = 0;  ///< 75 for compute_75 / sm_75
  std::uint16_t version_major = 0, version_minor = 0;
  bool arch_specific = false;    ///< compute_90a
  bool family_specific = false;  ///< compute_100f
  std::uint64_t flags = 0;
  std::span<const std::byte> payload;
  std::uint64_t unpacked_size = 0;  ///< of the text, payload.size() when not compressed
};

/// All entries of one fatbin, or of several that follow each other (8-aligned). No decompression happens
/// here.
result<std::vector<fatbin_entry>> fatbin_entries(std::span<const std::byte> fatbin);

/// Text of a PTX entry, decompressed, without the NUL padding.
result<std::string> entry_text(const fatbin_entry& entry);

/// Index of the PTX to use for a device of `capability`: the highest at or below it, else the lowest above
/// it; -1 when there is no PTX at all. Of equals, the one without an arch or family restriction.
int choose_ptx(std::span<const fatbin_entry> entries, std::uint32_t capability);

/// What a loader calls: `image` is a fatbin or plain PTX text (with or without trailing NULs); the answer is
/// PTX text. error::next is action::fall_back when the image is sound but holds no PTX (machine code only),
/// which a driver reports as CUDA_ERROR_NO_BINARY_FOR_GPU; action::fail when it is damaged
/// (CUDA_ERROR_INVALID_IMAGE).
result<std::string> image_ptx(std::span<const std::byte> image, std::uint32_t capability);

/// The fatbins a wrapper leads to: one for version 1; for version 2 (-rdc) the null-terminated array of the
/// objects' fatbins, which hold the PTX, else the device-linked one. The wrapper is memory of this process
/// that the program's own start-up code made, as trusted as the program; never call this with a peer's bytes.
result<std::vector<std::span<const std::byte>>> wrapper_fatbins(const void* wrapper);

/// Size of an image of this process that a call names by address only (cuModuleLoadData): fatbin by its
/// header, PTX up to and including its NUL. action::fall_back for anything else. Same trust as
/// `wrapper_fatbins`.
result<std::size_t> image_size(const void* image);

}  // namespace outboard::ptx
