// The value a CUDA runtime (12.8 and later) compares at start-up to see that its driver is whole: HMAC-MD2
// over addresses, process, thread and devices of the client process, so only the front-end can compute it.
// Pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "frontend/cuda/tables/md2.hh"

namespace outboard::frontend::cuda {

struct device_identity {
  std::array<std::uint8_t, 16> uuid{};
  std::int32_t pci_domain = 0, pci_bus = 0, pci_device = 0;  ///< attributes 50, 33, 34
};

struct integrity_facts {
  std::uint32_t driver_version = 0;  ///< as cuDriverGetVersion
  std::uint32_t version = 0;         ///< first argument of the check
  std::uint32_t process = 0;         ///< getpid()
  std::uint32_t thread = 0;          ///< low half of pthread_self()
  std::uint64_t runtime_table = 0;   ///< address of the CUDART interface table
  std::uint64_t check_table = 0;     ///< address of the table that holds the check
  std::uint64_t check_function = 0;  ///< address in its slot 1
  std::uint64_t unix_seconds = 0;    ///< second argument of the check
};

/// The bytes that are hashed: packed, little-endian.
std::vector<std::uint8_t> integrity_message(const integrity_facts& facts,
                                            std::span<const device_identity> devices);

md2_digest integrity_value(const integrity_facts& facts, std::span<const device_identity> devices);

}  // namespace outboard::frontend::cuda
