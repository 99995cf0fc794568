// Which files a worker needs, on a machine about which nothing else is known: our own interpreter, NVIDIA's
// CUDA driver, or OpenCL's drivers and compilers. Pure functions, except that they read links and the
// system's files that name libraries; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/confinement/confinement.hh"
#include "backend/confinement/landlock.hh"

namespace outboard::backend {

struct place {
  std::string path;
  permission what = permission::read;
};

/// `variable` is the worker's getenv. LD_LIBRARY_PATH, and for OpenCL OCL_ICD_VENDORS and OCL_ICD_FILENAMES,
/// which the operator sets, say where else there are drivers.
std::vector<place> places_of(executor by, const std::function<const char*(const char*)>& variable);

/// Returns whether the operator has CUDA's workers share the GPU through NVIDIA's MPS. Its clients connect to
/// sockets and share memory by name.
bool uses_mps(const std::function<const char*(const char*)>& variable);

}  // namespace outboard::backend
