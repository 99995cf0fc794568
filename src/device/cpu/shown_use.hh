// The bytes of device memory in use, shown outside of the process: the helper that answers NVML has no driver
// to ask. One cpu device a process, so one place. Set before the device is opened; any thread shows.
#pragma once

#include <atomic>
#include <cstdint>

namespace outboard::device::cpu {

/// From now on kept equal to what is in use; may lie in memory that others read. Null: nobody looks.
void show_used_bytes_in(std::atomic<std::uint64_t>* place);

void show_used_bytes(std::uint64_t bytes);

}  // namespace outboard::device::cpu
