// The result of a program's last build, compilation or linking. Any thread.
#pragma once

#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/link.hh"

namespace outboard::frontend::opencl {

/// nullptr: there was none, or it is not done.
inline build built_of(program_info& program) {
  const std::lock_guard lock(program.mutex);
  return program.built;
}

/// Whether it is the server's device of this name, or a part of it.
inline bool within(cl_device_id device, std::uint64_t id) {
  while (device && id_of(device) != id) device = find<device_info>(device)->parent.get();
  return device != nullptr;
}

/// The index at which a build reports this device; the number of its devices if it does not. Platforms may
/// name the whole device if a program is for a part of it (PoCL does).
inline std::size_t position_of(const marshal::opencl::build_reply& built, cl_device_id device) {
  for (; device; device = find<device_info>(device)->parent.get()) {
    const auto found = std::find_if(built.devices.begin(), built.devices.end(),
                                    [device](const auto& each) { return each.device == id_of(device); });
    if (found != built.devices.end()) return static_cast<std::size_t>(found - built.devices.begin());
  }
  return built.devices.size();
}

/// Whether it has kernels. Objects for the linker and libraries have none, though their builds succeeded. A
/// platform that does not say what a binary is has only executables.
inline bool is_executable(const build& built) {
  return built && built->code == CL_SUCCESS &&
         std::any_of(built->devices.begin(), built->devices.end(), [](const auto& each) {
           return each.binary_type == CL_PROGRAM_BINARY_TYPE_EXECUTABLE ||
                  each.binary_type == CL_PROGRAM_BINARY_TYPE_NONE;
         });
}

}  // namespace outboard::frontend::opencl
