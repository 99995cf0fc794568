// Which system calls this process, and all that it starts, can still make: those with which it could reach
// other processes, the network or the kernel's rarer parts fail with EPERM, as if it lacked the right. What
// is newer than this list fails with ENOSYS, as on an older kernel. Any thread, before others are there.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

#include "base/result.hh"

namespace outboard::backend {

/// Whether this kernel filters system calls.
bool system_calls_can_be_refused();

/// Of whom: a worker's drivers may start compilers; the gate starts no process and makes no socket but pairs.
enum class filtered { worker, gate };

/// The filter's program; signals may be sent to process `self` only.
std::vector<sock_filter> refused_system_calls(filtered who, pid_t self);

/// For good. Wants no_new_privs.
status refuse_system_calls(filtered who);

}  // namespace outboard::backend
