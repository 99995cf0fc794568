// The library that a tool wants in every CUDA program: NVIDIA's driver loads the library that
// CUDA_INJECTION64_PATH names when a program initialises it, and calls its InitializeInjection (CUPTI's
// documentation). So do we.
#pragma once

namespace outboard::frontend::cuda {

/// After the first cuInit that succeeds; later calls do nothing. The library may call CUDA. What cannot be
/// loaded is said in the log, and the program goes on.
void load_injected_tool();

}  // namespace outboard::frontend::cuda
