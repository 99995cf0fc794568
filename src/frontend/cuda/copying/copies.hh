// What copies of every shape ask about the program's memory. Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "frontend/cuda/memory/mirrors.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

/// The block of host memory that kernels see in which the address lies: the server has it too, and what is
/// there may be newer.
std::optional<mirror> mirror_of(const lane& own, std::uint64_t address);

/// Copies of the synchronous kind end before the program goes on; what they wrote comes back with the wait.
CUresult finish(lane& own, marshal::flavour how);

/// Bytes of posted copies may still be on their way into this host range: they must have landed before it is
/// read.
CUresult settle(lane& own, const void* source, std::uint64_t size);

/// Device memory by our books, else host memory: every device address that a program can have is in them.
bool on_device(const lane& own, std::uint64_t address);
/// Device memory but for managed memory: this process cannot touch it, whatever the program calls it.
bool of_device_alone(const lane& own, std::uint64_t address);

/// The range begins in a block that we know and ends outside of it and of those that touch it: every copy of
/// it is refused by the driver, to the byte (measured: 580), before it has read or written anything.
bool leaves_its_block(const lane& own, std::uint64_t address, std::uint64_t size);

/// All of the host range is one page-locked block.
bool page_locked(const lane& own, std::uint64_t address, std::uint64_t size);

/// May a copy from the program's memory still be under way when the call returns? Another process that shares
/// memory with this one may learn of the return in another way.
inline bool may_run_behind(const lane& own, marshal::flavour how) {
  return marshal::on_stream(how) || !own.state().memory.shared.in_use();
}

}  // namespace outboard::frontend::cuda
