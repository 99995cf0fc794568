// What a worker does to itself before it reads a byte of a client: it keeps only the files, devices and
// system calls that its drivers and compilers need, and the connections that it was given. Processes and
// threads that it starts have no more. Called by the only thread of the process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::backend {

/// What executes the code of a worker's client. It decides what the worker keeps.
enum class executor : std::uint8_t {
  platforms,    ///< OpenCL's platforms, which may start compilers
  driver,       ///< NVIDIA's CUDA driver
  interpreter,  ///< the cpu device: no devices, no sockets, no other processes
  gate,         ///< nothing: it ends TLS, and has all that it needs before (backend/gate)
};

struct confinement {
  executor by = executor::platforms;
  std::string folder = {};             ///< where it works, and may write; empty: it has none
  std::vector<std::string> kept = {};  ///< further folders in which it may write
  bool log_refusals = false;           ///< the kernel logs each system call that the filter refuses
};

/// Names what this kernel lacks for it, as words for a sentence; "" if it lacks nothing.
std::string confinement_lacks();

/// Says what this kernel has for it, for `doctor`: "Landlock 7, seccomp".
std::string confinement_here();

/// Confines this process for good. What confinement_lacks() names is left out; anything else that fails is an
/// error.
status confine_this_process(const confinement& how, const std::function<const char*(const char*)>& variable);

}  // namespace outboard::backend
