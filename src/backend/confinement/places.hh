// Which files OpenCL's drivers and compilers need, on a machine about which nothing else is known, and which
// the gate needs. Pure but for looking at .icd files and links; any thread.
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

/// `variable` is the worker's getenv: OCL_ICD_VENDORS, OCL_ICD_FILENAMES and LD_LIBRARY_PATH, which the
/// operator sets, say where else platforms are.
std::vector<place> places_of_drivers(const std::function<const char*(const char*)>& variable);

/// For the times in its log.
std::vector<place> places_of_the_gate();

}  // namespace outboard::backend
