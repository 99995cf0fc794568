// What a program gets for its profilers: those that it has inside, which load CUPTI, and the ranges that it
// names by NVTX. In the child, before the program.
#pragma once

#include <string>

namespace outboard::tool {

/// Sets what says so in this process's environment. `libraries`: the front-end's folder. `inside`: the
/// program may have a profiler of its own. `profile`: ours is wanted.
void give_profilers(const std::string& libraries, bool inside, bool profile);

}  // namespace outboard::tool
