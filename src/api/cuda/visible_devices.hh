// CUDA_VISIBLE_DEVICES as the driver reads it (observed on driver 580.159.04, one H200). The first entry says
// whether the list is one of indices or of UUIDs; it ends at the first entry that is of another kind or names
// no device. An index is the number that the entry begins with ("0x1" is 0). A UUID is "GPU-" or "MIG-" and
// at least one hexadecimal digit; case, dashes and what follows are ignored. A device that is named twice
// makes the whole list invalid. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outboard::api {

struct visible_devices {
  std::vector<std::size_t> ordinals;
  bool twice = false;  ///< cuInit gives CUDA_ERROR_INVALID_DEVICE
};

/// `uuids`: "GPU-…", or "MIG-…" for a part of a board.
visible_devices read_visible_devices(std::string_view list, std::span<const std::string> uuids);

/// The device that one entry names; nothing if it names none, or more than one.
std::optional<std::size_t> find_visible_device(std::string_view entry, std::span<const std::string> uuids);

}  // namespace outboard::api
