// Module images (the arguments of cuModuleLoadData and cuLibraryLoadData), understood on both sides without a
// driver: how many bytes a pointer stands for, which of them a device can use, how they travel. Free
// functions and values, any thread. Only image_extent follows pointers, in the program's own process;
// everything else takes a peer's bytes and checks each size against the bytes it has and a limit before it
// allocates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::marshal {

/// No real image comes close (the largest fatbin of libtorch is below 2 GiB).
inline constexpr std::uint64_t max_image_bytes = 4ull << 30;
/// That text with the head and padding of the form that travels.
inline constexpr std::uint64_t max_encoded_image_bytes = max_image_bytes + (1 << 20);
/// Most objects of one program built with -rdc.
inline constexpr std::size_t max_image_parts = 65536;

enum class image_kind : std::uint8_t { fatbin = 1, elf = 2, ptx = 3 };

/// An image as views of memory that somebody else owns. A version 2 wrapper (-rdc) has several fatbins:
/// parts[0] is the device-linked one (machine code only), the others are those of the objects (these hold the
/// PTX).
struct image_view {
  image_kind kind = image_kind::fatbin;
  bool linked = false;  ///< from a version 2 wrapper
  std::vector<std::span<const std::byte>> parts;

  std::uint64_t size() const;
};

/// Measures the image that cuModuleLoadData, cuModuleLoadFatBinary or cuLibraryLoadData is given: wrapper,
/// fatbin, cubin, or PTX text (including its NUL). Trusts the program's memory within the stated sizes, as a
/// driver does. action::fall_back: the image is sound but of a kind that is not supported (LTO-IR, NVVM);
/// action::fail: CUDA_ERROR_INVALID_IMAGE.
result<image_view> image_extent(const void* image);

/// The same for bytes with a known end (a file that the front-end read): checks instead of trusting.
result<image_view> image_extent(std::span<const std::byte> bytes);

struct image_target {
  std::uint32_t major = 0, minor = 0;  ///< compute capability of the device
  bool wants_ptx = false;  ///< the cpu device: takes only PTX, and prefers one that is too new to none
  bool whole = false;      ///< keep everything, select nothing
};

/// One image that is ready to travel or has arrived: the parts are copies, aligned for the driver's loader.
class module_image {
 public:
  /// Keeps from each fatbin the entries that the target can use (best machine code, best PTX as fallback),
  /// with payloads compressed as they are. Sets `reduced` if something was left out. action::fall_back:
  /// nothing can be used (CUDA_ERROR_NO_BINARY_FOR_GPU).
  static result<module_image> select(const image_view& from, const image_target& target);

  /// Checks a peer's bytes; afterwards a loader that trusts the sizes inside stays within the parts.
  static result<module_image> decode(std::span<const std::byte> bytes);

  const std::vector<std::byte>& encoded() const { return bytes_; }  ///< the bytes that travel and are hashed
  bool reduced() const { return reduced_; }                         ///< not known after decode
  image_view view() const;

  /// Returns what cuLibraryLoadData or cuModuleLoadData must be given; valid while this object lives and does
  /// not move.
  const void* load_pointer();

 private:
  static module_image pack(const image_view& view, bool reduced);

  struct part_place {
    std::size_t offset, size;
  };
  struct wrapper {
    std::uint32_t magic, version;
    const void* data;
    const void* more;
  };

  std::vector<std::byte> bytes_;  // the wire form; its parts lie at multiples of 16
  std::vector<part_place> places_;
  image_kind kind_ = image_kind::fatbin;
  bool linked_ = false, reduced_ = false;
  wrapper wrapper_{};
  std::vector<const void*> more_;
};

}  // namespace outboard::marshal
