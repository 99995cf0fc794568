// Stream memory operations: waits for and writes of values, alone or in batches. Any thread.
#pragma once

#include <span>

#include "device/cpu/scheduler.hh"

namespace outboard::device::cpu {

/// What the driver refuses at the call.
CUresult check_memory_operations(std::span<const CUstreamBatchMemOpParams> operations, unsigned flags);
/// A wait ends with its value, or when the streams' context has failed.
CUresult run_memory_operations(std::span<const CUstreamBatchMemOpParams> operations, const group_ptr& group);

}  // namespace outboard::device::cpu
