// Which files drivers and compilers need, on a machine about which nothing else is known, and which the gate
// needs. Pure but for looking at .icd files, the loader's configuration and links; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/confinement/landlock.hh"

namespace outboard::backend {

struct place {
  std::string path;
  permission what = permission::read;
};

/// OpenCL's, and what all workers need. `variable` is the worker's getenv: OCL_ICD_VENDORS, OCL_ICD_FILENAMES
/// and LD_LIBRARY_PATH, which the operator sets, say where else platforms are.
std::vector<place> places_of_drivers(const std::function<const char*(const char*)>& variable);

/// What CUDA's driver and CUPTI need beside those: their devices, where the loader finds libraries, memory
/// that processes share by name, and the folder of MPS.
std::vector<place> places_of_cuda(const std::function<const char*(const char*)>& variable);

/// What NVIDIA's library for NVML needs: the same, without what processes share by name, and without MPS.
std::vector<place> places_of_nvml(const std::function<const char*(const char*)>& variable);

/// Where a server of MPS is met; empty: there is none, neither named by CUDA_MPS_PIPE_DIRECTORY nor where one
/// is by default.
std::string folder_of_mps(const std::function<const char*(const char*)>& variable);

/// For the times in its log. Other helpers of our own code need no more either.
std::vector<place> places_of_the_gate();

}  // namespace outboard::backend
