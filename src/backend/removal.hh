// Removes a folder with everything in it, whoever put it there: however deep, however many, whatever the
// modes. Links are removed, not followed. For the time in which nobody else writes there; any thread.
#pragma once

#include <string>

#include "base/result.hh"

namespace outboard::backend {

/// `name` of the folder `above`, which serves as a workbench: what lies deep is moved up into it first, so
/// that neither depth nor the length of paths matters. An error: what could not be removed, and why.
status remove_folder(const std::string& above, const std::string& name);

}  // namespace outboard::backend
