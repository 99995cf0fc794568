#include "device/cpu/profile.hh"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string_view>

#include "ptx/run/executor.hh"

namespace outboard::device::cpu {
namespace {

using limits = ptx::executor_limits;

/// FNV-1a, twice with different seeds: 128 bits that only have to differ between machines.
std::array<std::byte, 16> machine_uuid() {
  std::string id;
  std::getline(std::ifstream("/etc/machine-id"), id);
  if (id.empty()) {
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    id = host;
  }
  std::array<std::byte, 16> uuid{};
  for (std::size_t half = 0; half < 2; ++half) {
    std::uint64_t hash = 0xcbf29ce484222325ull ^ (half * 0x9e3779b97f4a7c15ull);
    for (const char c : "outboard cpu device " + id) {
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
    }
    for (std::size_t i = 0; i < 8; ++i) uuid[half * 8 + i] = static_cast<std::byte>(hash >> (8 * i));
  }
  uuid[6] = (uuid[6] & std::byte{0x0f}) | std::byte{0x80};  // RFC 9562 version 8: vendor's own scheme
  uuid[8] = (uuid[8] & std::byte{0x3f}) | std::byte{0x80};
  return uuid;
}

int clamp_int(std::uint64_t value) { return static_cast<int>(std::min<std::uint64_t>(value, 0x7fffffff)); }

}  // namespace

profile make_profile(int capability, unsigned cores, std::uint64_t memory_bytes, bool kernel_timeout) {
  profile p;
  p.capability = capability;
  p.cores = cores;
  p.memory_bytes = memory_bytes;
  p.uuid = machine_uuid();
  p.kernel_timeout = kernel_timeout;
  // CUDA C programming guide, table of technical specifications per compute capability.
  const bool consumer = capability == 86 || capability == 87 || capability == 89 || capability >= 120;
  if (capability >= 80) {
    p.threads_per_multiprocessor = consumer ? 1536 : 2048;
    p.blocks_per_multiprocessor = consumer ? (capability == 89 ? 24 : 16) : 32;
    p.shared_per_multiprocessor = (consumer ? 100 : capability >= 90 ? 228 : 164) << 10;
    p.reserved_shared_per_block = 1 << 10;
    p.shared_per_block_optin = p.shared_per_multiprocessor - p.reserved_shared_per_block;
  } else if (capability < 75) {
    p.threads_per_multiprocessor = 2048;
    p.blocks_per_multiprocessor = 32;
    p.shared_per_multiprocessor = 96 << 10;
    p.shared_per_block_optin = capability >= 70 ? 96 << 10 : 48 << 10;
  }
  return p;
}

namespace {

/// Sizes of textures and surfaces: those that compute capability 7.5 has. 0 for every other attribute.
int texture_limit(CUdevice_attribute id) {
  switch (id) {
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_WIDTH:
      return 131072;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_HEIGHT:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_HEIGHT:
      return 65000;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LINEAR_PITCH:
      return 2097120;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH:
      return 1 << 28;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE3D_DEPTH:
      return 16384;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE:
      return 8192;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_GATHER_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_HEIGHT:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_WIDTH:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH:
      return 32768;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE2D_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE1D_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACE2D_LAYERED_LAYERS:
      return 2048;
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS:
    case CU_DEVICE_ATTRIBUTE_MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS:
      return 2046;
    default:
      return 0;
  }
}

}  // namespace

std::optional<int> profile::attribute(CUdevice_attribute id) const {  // a table
  if (id < 1 || id >= CU_DEVICE_ATTRIBUTE_MAX) return std::nullopt;
  switch (id) {
    // Shapes of a launch: what the executor takes.
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return static_cast<int>(limits::max_threads);
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
      return static_cast<int>(limits::max_block[0]);
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y:
      return static_cast<int>(limits::max_block[1]);
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z:
      return static_cast<int>(limits::max_block[2]);
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
      return static_cast<int>(limits::max_grid[0]);
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
      return static_cast<int>(limits::max_grid[1]);
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
      return static_cast<int>(limits::max_grid[2]);
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
      return static_cast<int>(limits::warp_size);
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
      return 1;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
      return 1;
    case CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT:
      return kernel_timeout;

    // Size of the machine.
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      return static_cast<int>(cores);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
      return threads_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
      return blocks_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
      return shared_per_block;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      return shared_per_block_optin;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
      return shared_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
      return reserved_shared_per_block;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY:
      return 65536;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
      return registers_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
      return registers_per_multiprocessor;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      return capability / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      return capability % 10;
    // Of the host's order; programs divide by them to print a bandwidth.
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
      return 2000000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
      return 1600000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH:
      return 128;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      return 4 << 20;
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
      return 2;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED:
      return 1;

    // Memory and copies.
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH:
      return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT:
      return 32;
    case CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT:
      return 512;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
      return 1;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT:
      return clamp_int(std::max(1u, std::min(cores, 2u)));
    case CU_DEVICE_ATTRIBUTE_INTEGRATED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
      return 1;
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
      return 1;
    case CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST:
      return 1;
    case CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES:
      return CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
      return 1;

    // Streams.
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
      return 0;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS:
      return 1;
    case CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR:
      return 1;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
      return 1;

    // Where it sits. A bus number that boards seldom have.
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
      return pci_domain;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
      return pci_bus;
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
      return pci_device;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
      return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_NUMA_CONFIG:
      return CU_DEVICE_NUMA_CONFIG_NONE;
    case CU_DEVICE_ATTRIBUTE_NUMA_ID:
      return -1;
    case CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID:
      return 0;
    default:
      return texture_limit(id);
  }
}

}  // namespace outboard::device::cpu
