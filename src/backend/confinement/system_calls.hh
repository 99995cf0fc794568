// Restricts the system calls of this process and of all that it starts. Those with which it could reach other
// processes, the network or rarely used parts of the kernel fail with EPERM, as if it lacked the right. Those
// that are newer than this list fail with ENOSYS, as on an older kernel. Called before other threads exist.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <vector>

#include "backend/confinement/confinement.hh"
#include "base/result.hh"

namespace outboard::backend {

/// Returns whether this kernel can filter system calls.
bool system_calls_can_be_refused();

/// What a filter depends on.
struct filter_terms {
  executor by = executor::platforms;
  bool connections = false;  ///< connect() is allowed
  bool log = false;          ///< the kernel logs what it refuses (its log of audits)
};

/// Returns the filter's program. It allows signals to the process `self` only.
std::vector<sock_filter> refused_system_calls(const filter_terms& terms, pid_t self);

/// Installs the filter for good. Needs no_new_privs.
status refuse_system_calls(const filter_terms& terms);

}  // namespace outboard::backend
