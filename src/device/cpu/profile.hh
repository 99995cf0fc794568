// Every attribute of the cpu device, derived from the options so that the values agree with each other and
// with the executor. Immutable after creation; any thread.
//
// A multiprocessor is a core. A limit that depends on the compute capability is that of boards of this
// capability. Attributes of features that the device lacks (clusters, peers, DMA to others) are 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "api/cuda/headers.hh"

namespace outboard::device::cpu {

struct profile {
  int capability = 75;
  unsigned cores = 1;
  std::uint64_t memory_bytes = 0;
  std::array<std::byte, 16> uuid{};  ///< the same on this machine at every start
  bool kernel_timeout = false;

  int threads_per_multiprocessor = 1024;
  int blocks_per_multiprocessor = 16;
  int shared_per_multiprocessor = 64 << 10;
  int shared_per_block_optin = 64 << 10;
  int reserved_shared_per_block = 0;

  static constexpr int registers_per_multiprocessor = 65536;
  static constexpr int shared_per_block = 48 << 10;
  static constexpr const char* name = "Outboard CPU device";
  static constexpr int driver_version = api::described_version;
  static constexpr int pci_domain = 0, pci_bus = 0xfe, pci_device = 0x1f;
  static constexpr const char* pci_bus_id = "0000:FE:1F.0";

  /// Nothing for ids that the driver API does not define.
  std::optional<int> attribute(CUdevice_attribute id) const;
};

profile make_profile(int capability, unsigned cores, std::uint64_t memory_bytes, bool kernel_timeout);

}  // namespace outboard::device::cpu
