#include "backend/daemon/device_shape.hh"

#include <algorithm>

#include "api/cuda/visible_devices.hh"

namespace outboard::backend {
namespace {

/// NVML_DEVICE_NAME_V2_BUFFER_SIZE without the zero.
constexpr std::size_t longest_name = 95;

}  // namespace

std::string shaped_name(const shape_settings& shape, std::string_view own) {
  if (shape.name.empty()) return std::string(own);
  std::string name = shape.name;
  const std::size_t at = name.find(board_name_mark);
  if (at != std::string::npos) name.replace(at, board_name_mark.size(), own);
  if (name.size() > longest_name) name.resize(longest_name);
  return name;
}

std::uint64_t shaped_memory(const shape_settings& shape, std::uint64_t total) {
  return shape.memory == 0 ? total : std::min(shape.memory, total);
}

void apply_shape(const shape_settings& shape, marshal::snapshot& facts) {
  for (marshal::device_facts& device : facts.devices) {
    device.name = shaped_name(shape, device.name);
    device.total_memory = shaped_memory(shape, device.total_memory);
  }
}

result<std::vector<std::size_t>> choose_devices(std::span<const std::string> wanted,
                                                std::span<const std::string> uuids, std::string_view key) {
  std::vector<std::size_t> chosen;
  for (const std::string& entry : wanted) {
    const auto place = api::find_visible_device(entry, uuids);
    const bool twice = place && std::find(chosen.begin(), chosen.end(), *place) != chosen.end();
    if (place && !twice) {
      chosen.push_back(*place);
      continue;
    }
    std::string there;
    for (std::size_t i = 0; i < uuids.size(); ++i)
      there.append(i == 0 ? "" : ", ").append(std::to_string(i)).append(" = ").append(uuids[i]);
    return failure(std::string(key) + ": \"" + entry + "\" names " +
                   (twice ? "a device that is named before" : "no device or more than one") +
                   "; there are: " + there);
  }
  return chosen;
}

}  // namespace outboard::backend
