// Programs that must fail: wild and misaligned addresses, traps, assertions, launches and texts that are
// refused. Each runs in a process of its own, because most of these errors are sticky. Its line has the codes
// of the launch, of the synchronisation after it, and of the next call.
#pragma once

#include <string>

namespace conformance {

/// Records into a file, or compares with one; 0 when all agree.
int run_faults(const std::string& record, const std::string& compare);
int run_fault(const std::string& name);

}  // namespace conformance
