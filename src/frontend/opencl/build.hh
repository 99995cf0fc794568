// What became of a program's last build, compilation or linking. Any thread.
#pragma once

#include "frontend/opencl/kinds.hh"

namespace outboard::frontend::opencl {

/// nullptr: there was none, or it is not done.
inline build built_of(program_info& program) {
  const std::lock_guard lock(program.mutex);
  return program.built;
}

/// Has it kernels? Objects for the linker and libraries have none, though their builds succeeded. A platform
/// that does not say what a binary is has executables alone.
inline bool is_executable(const build& built) {
  return built && built->code == CL_SUCCESS &&
         std::any_of(built->devices.begin(), built->devices.end(), [](const auto& each) {
           return each.binary_type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE ||
                  each.binary_type == CL_PROGRAM_BINARY_TYPE_NONE;
         });
}

}  // namespace outboard::frontend::opencl
