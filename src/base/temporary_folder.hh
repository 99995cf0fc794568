// Makes a folder that this process alone uses, for as long as it needs it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hh"

namespace outboard {

/// The folder is below TMPDIR if that is a full path, else below /tmp; also below /tmp if the path would
/// otherwise have more than `longest` bytes. Its name is `name` and six unique characters, its mode 0700. The
/// caller removes it.
result<std::string> make_temporary_folder(std::string_view name, std::size_t longest = 4096);

}  // namespace outboard
