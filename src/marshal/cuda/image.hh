// Module images (what cuModuleLoadData and cuLibraryLoadData are given) understood on both sides without a
// driver: how many bytes a pointer stands for, which of them a device can use, how they travel. Free
// functions and values, any thread. Only image_extent follows pointers, in the program's own process;
// everything else takes bytes of a peer and checks each size against the bytes at hand and a limit before it
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

/// No real image comes near (the largest fatbin of libtorch is below 2 GiB).
inline constexpr std::uint64_t max_image_bytes = 4ull << 30;
/// With its head and padding, as it travels.
inline constexpr std::uint64_t max_encoded_image_bytes = max_image_bytes + (1 << 20);
/// Objects of one -rdc program.
inline constexpr std::size_t max_image_parts = 65536;

enum class image_kind : std::uint8_t { fatbin = 1, elf = 2, ptx = 3 };

/// An image as spans of somebody's memory; nothing is owned. For a version 2 wrapper (-rdc) there are several
/// fatbins: parts[0] is the device-linked one (machine code only), the others are the objects' (these hold
/// the PTX).
struct image_view {
  image_kind kind = image_kind::fatbin;
  bool linked = false;  ///< from a version 2 wrapper
  std::vector<std::span<const std::byte>> parts;

  std::uint64_t size() const;
};

/// What the pointer given to cuModuleLoadData, cuModuleLoadFatBinary or cuLibraryLoadData leads to: wrapper,
/// fatbin, cubin, or PTX text (its NUL counted in). Trusts the program's memory as a driver would, within the
/// sizes stated. action::fall_back names what is sound but not taken (LTO-IR, NVVM); action::fail:
/// CUDA_ERROR_INVALID_IMAGE.
result<image_view> image_extent(const void* image);

/// The same for bytes whose end is known (a file that the front-end read): checks instead of trusting.
result<image_view> image_extent(std::span<const std::byte> bytes);

struct image_target {
  std::uint32_t major = 0, minor = 0;  ///< compute capability of the device
  bool wants_ptx = false;              ///< the cpu device: PTX only, and rather a newer one than none
  bool whole = false;                  ///< no selection: everything
};

/// One image ready to travel or arrived: the parts are copies, aligned for the driver's loader.
class module_image {
 public:
  /// Keeps of each fatbin the entries that the target can use (best machine code, best PTX as fallback),
  /// payloads compressed as they stand. `reduced` is set when something was left out. action::fall_back when
  /// nothing can be used (CUDA_ERROR_NO_BINARY_FOR_GPU).
  static result<module_image> select(const image_view& from, const image_target& target);

  /// Bytes of a peer, checked: afterwards a loader that believes the sizes inside stays within the parts.
  static result<module_image> decode(std::span<const std::byte> bytes);

  const std::vector<std::byte>& encoded() const { return bytes_; }  ///< what travels and what is hashed
  bool reduced() const { return reduced_; }                         ///< not known after decode
  image_view view() const;

  /// What to hand to cuLibraryLoadData or cuModuleLoadData; valid while this object lives and does not move.
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

  std::vector<std::byte> bytes_;  // the wire form; parts lie in it at multiples of 16
  std::vector<part_place> places_;
  image_kind kind_ = image_kind::fatbin;
  bool linked_ = false, reduced_ = false;
  wrapper wrapper_{};
  std::vector<const void*> more_;
};

}  // namespace outboard::marshal
