// Removes a folder with everything in it, whoever put it there: however deep, however many, whatever the
// modes. Links are removed, not followed, also where somebody exchanges folders and links meanwhile; who
// writes there all the time keeps it from ending. Any thread.
#pragma once

#include <string>

#include "base/result.hh"

namespace outboard::backend {

/// `name` of the folder `above`, which serves as a workbench: what lies deep is moved up into it first, so
/// that neither depth nor the length of paths matters. An error: what could not be removed, and why.
status remove_folder(const std::string& above, const std::string& name);

/// `name` leaves the folder `folder`, where others may write: it is gone, or (true) it is a folder that is
/// called `up` in `above` from now on, for remove_folder().
result<bool> take_out(int folder, const char* name, int above, const std::string& up);

}  // namespace outboard::backend
