// CUPTI's functions, as the program calls them through our libcupti. Each does what NVIDIA's documentation of
// CUPTI says of the function of its name, as far as docs/how-to/profile.md lists it. Any thread; none throws.
#pragma once

namespace outboard::frontend::cupti {

/// The function of this name, for programs that were made for this major version of CUDA, or nullptr.
void* find_entry(const char* name, int major);

}  // namespace outboard::frontend::cupti
