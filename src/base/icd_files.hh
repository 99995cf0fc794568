// The OpenCL platforms that are installed on this machine, as its loaders find them: files that each name a
// library. Looks at the disk; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace outboard {

/// {file name, library}, in the order of names, of the folder, file or library that `said` (OCL_ICD_VENDORS)
/// names; null or empty: of /etc/OpenCL/vendors. Ours is not among them.
std::vector<std::pair<std::string, std::string>> icd_files(const char* said);

}  // namespace outboard
