// Publishes the bytes of device memory in use outside the process, because the helper that answers NVML has
// no driver to ask. A process has one cpu device, so there is one place. Set it before the device is opened;
// any thread may publish.
#pragma once

#include <atomic>
#include <cstdint>

namespace outboard::device::cpu {

/// Keeps `place` equal to the bytes in use from now on; it may lie in memory that other processes read. Null:
/// not published.
void show_used_bytes_in(std::atomic<std::uint64_t>* place);

void show_used_bytes(std::uint64_t bytes);

}  // namespace outboard::device::cpu
