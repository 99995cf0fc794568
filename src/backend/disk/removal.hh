// Removes a folder with everything in it, even if a stranger filled it: at any depth, in any number, with any
// modes. Links are removed, not followed, even if somebody exchanges folders and links meanwhile. A process
// that writes there all the time can keep it from finishing. Any thread.
#pragma once

#include <string>

#include "base/result.hh"

namespace outboard::backend {

/// Removes `name` from the folder `above`, which serves as a workbench: what lies deep is moved up into it
/// first, so that neither depth nor the length of paths matters. An error says what could not be removed, and
/// why.
status remove_folder(const std::string& above, const std::string& name);

/// Takes `name` out of the folder `folder`, where others may write. False: it is removed. True: it is a
/// folder that is not empty, and is now `up` in `above`, for remove_folder().
result<bool> take_out(int folder, const char* name, int above, const std::string& up);

}  // namespace outboard::backend
