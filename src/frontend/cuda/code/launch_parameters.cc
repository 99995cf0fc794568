#include "frontend/cuda/code/launch_parameters.hh"

#include <cstring>

#include "api/cuda/headers.hh"

namespace outboard::frontend::cuda {

void put_parameters(wire::writer& w, std::span<const marshal::kernel_parameter> layout, std::uint32_t bytes,
                    void* const* values) {
  w.put<std::uint64_t>(bytes);
  const std::span<std::byte> room = w.room(bytes);  // fresh room of a vector is zero
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout[i].size) std::memcpy(room.data() + layout[i].offset, values[i], layout[i].size);
  }
}

std::optional<std::span<const std::byte>> packed_buffer(void* const* extra) {
  constexpr int most_keys = 8;  // two are defined; a list without an end must not be walked for ever
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (int i = 0; i < most_keys; ++i, extra += 2) {
    const auto key = reinterpret_cast<std::uintptr_t>(extra[0]);
    if (key == CU_LAUNCH_PARAM_END_AS_INT) {
      if (!buffer && size) return std::nullopt;
      return std::span(static_cast<const std::byte*>(buffer), buffer ? size : 0);
    }
    if (key == CU_LAUNCH_PARAM_BUFFER_POINTER_AS_INT) {
      buffer = extra[1];
    } else if (key == CU_LAUNCH_PARAM_BUFFER_SIZE_AS_INT && extra[1]) {
      size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace outboard::frontend::cuda
