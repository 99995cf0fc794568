// Which system calls this process, and all that it starts, can still make: those with which it could reach
// other processes, the network or the kernel's rarer parts fail with EPERM, as if it lacked the right. What
// is newer than this list fails with ENOSYS, as on an older kernel, and so does everything that is not on the
// list of a process whose code is all ours (allowed_calls.hh). Nobody is killed for a call: it does nothing
// either way, and a C library that tries a newer one goes on with an older. Any thread, before others are
// there.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "base/result.hh"

namespace outboard::backend {

/// Whether this kernel filters system calls.
bool system_calls_can_be_refused();

/// Who is to live with the filter.
enum class filtered : std::uint8_t {
  worker,           ///< our own code and OpenCL's platforms, which may start compilers
  cpu_worker,       ///< CUDA without a driver: our own code alone
  driver,           ///< CUDA's driver as well, on a host where it finds no server of MPS
  driver_with_mps,  ///< and one where it connects to one: whatever else listens on local sockets is open then
  helper,           ///< the gate, and others of our own code: starts no process, makes no socket but pairs
  remover,          ///< a helper that opens modes of folders, and ends process groups
  tidier,           ///< a helper that opens modes of folders
  nvml,             ///< NVIDIA's library for NVML: as `driver`, but starts no process
  checkpoint,       ///< CUDA's driver, which looks into one other process
};
/// Whether it has a library of NVIDIA's.
constexpr bool has_a_driver(filtered who) {
  return who == filtered::driver || who == filtered::driver_with_mps || who == filtered::nvml ||
         who == filtered::checkpoint;
}

/// The filter's program. Signals may be sent to process `self` only, by a remover SIGKILL to all. `other`:
/// into which a checkpoint's driver may look.
std::vector<sock_filter> refused_system_calls(filtered who, pid_t self, pid_t other = -1);

/// For good. Wants no_new_privs. `told`: the kernel's log gets a line for each call that is refused, where it
/// writes such lines.
status refuse_system_calls(filtered who, bool told = false, pid_t other = -1);

}  // namespace outboard::backend
