// What other chapters need from the chapter coredump. Any thread.
#pragma once

#include "frontend/cuda/ends.hh"

namespace outboard::frontend::cuda {

/// A context is to be made with CU_CTX_COREDUMP_ENABLE: the server must have a place for its dump, and the
/// context's attributes say that it dumps.
CUresult prepare_core_dumps();
void context_dumps(std::uint64_t context);

}  // namespace outboard::frontend::cuda
