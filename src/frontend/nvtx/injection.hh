// NVTX's way in: the header in a program loads what NVTX_INJECTION64_PATH names, at its first call, and calls
// InitializeInjectionNvtx2 there. Ours is libcupti's, as NVIDIA's is, and leads here.
#pragma once

#include <cstdint>

namespace outboard::frontend::nvtx {

/// Puts our functions behind those of one copy of NVTX (each library of a program may have its own).
/// `tables`: NVTX's NvtxGetExportTableFunc_t. 1: done; 0: this NVTX cannot be attached to. Any thread.
int attach(const void* (*tables)(std::uint32_t id));

}  // namespace outboard::frontend::nvtx
