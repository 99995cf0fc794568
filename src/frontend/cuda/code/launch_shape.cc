#include "frontend/cuda/code/launch_shape.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr std::uint64_t warp = 32;
/// The driver gives registers to a warp in units of 256, that is 8 a thread (all architectures since Kepler).
constexpr std::uint64_t register_unit = 8;
/// A kernel whose registers nobody has told us may use as many as the architecture has.
constexpr std::uint64_t most_registers = 256;

bool inside(const std::array<std::uint32_t, 3>& size, const std::array<std::uint32_t, 3>& limit) {
  for (std::size_t i = 0; i < 3; ++i) {
    if (size[i] == 0 || size[i] > limit[i]) return false;
  }
  return true;
}

std::uint64_t product(const std::array<std::uint32_t, 3>& size) {
  return std::uint64_t{size[0]} * size[1] * size[2];  // within the block limits: far below 2^64
}

bool needs_registers(const marshal::kernel_info& facts, std::uint64_t threads, std::uint64_t available) {
  const std::uint64_t each =
      facts.registers < 0 ? most_registers : static_cast<std::uint64_t>(facts.registers);
  const std::uint64_t rounded = (each + register_unit - 1) / register_unit * register_unit;
  return (threads + warp - 1) / warp * warp * rounded > available;
}

bool odd(const launch_shape& shape, const marshal::kernel_info& facts) {
  if (shape.cooperative || shape.cluster[0] || facts.explicit_cluster || facts.required_cluster[0])
    return true;
  if (!facts.required_block[0]) return false;
  for (std::size_t i = 0; i < 3; ++i) {
    if (static_cast<std::uint32_t>(facts.required_block[i]) != shape.block[i]) return true;
  }
  return false;
}

}  // namespace

launch_limits launch_limits::of(const marshal::device_facts& device) {
  const auto attribute = [&](CUdevice_attribute id) -> std::uint32_t {
    const auto i = static_cast<std::size_t>(id);
    if (i >= device.attributes.size() || device.attributes[i].result != CUDA_SUCCESS) return 0;
    return device.attributes[i].value > 0 ? static_cast<std::uint32_t>(device.attributes[i].value) : 0;
  };
  launch_limits l;
  l.threads = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  l.block = {attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
             attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)};
  l.grid = {attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
            attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)};
  l.registers = attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
  return l;
}

prospect judge(const launch_shape& shape, const kernel_object& kernel, const launch_limits& limits) {
  if (!inside(shape.grid, limits.grid) || !inside(shape.block, limits.block)) return prospect::bad;
  const std::uint64_t threads = product(shape.block);
  if (threads > limits.threads) return prospect::bad;
  const bool fits_shared = shape.shared <= kernel.dynamic_shared_limit.load(std::memory_order_relaxed);
  if (!kernel.facts) return prospect::doubtful;
  const marshal::kernel_info& facts = *kernel.facts;
  if (facts.max_threads >= 0 && threads > static_cast<std::uint64_t>(facts.max_threads)) return prospect::bad;
  // A grid of clusters must divide; the driver says so each time.
  for (std::size_t i = 0; i < 3; ++i) {
    if (shape.cluster[i] && shape.grid[i] % shape.cluster[i]) return prospect::bad;
  }
  // The limit may have been raised by the kernel's other handle, and what an image says of its own shared
  // memory is more than the driver counts in some of NVIDIA's: only the driver knows.
  if (!fits_shared) return prospect::doubtful;
  return odd(shape, facts) || needs_registers(facts, threads, limits.registers) ? prospect::doubtful
                                                                                : prospect::good;
}

std::uint64_t shape_key(const launch_shape& shape, std::uint32_t limit) {
  std::uint64_t h = 0xcbf29ce484222325;
  const auto mix = [&](std::uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15;
    h ^= h >> 29;
  };
  for (const std::uint32_t v : shape.block) mix(v);
  for (const std::uint32_t v : shape.cluster) mix(v);
  mix(shape.shared);
  mix(limit);
  mix(shape.cooperative);
  if (shape.cooperative) {  // all blocks must fit at once
    for (const std::uint32_t v : shape.grid) mix(v);
  }
  return h | 1;
}

}  // namespace outboard::frontend::cuda
