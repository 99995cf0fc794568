// A folder of this process alone, for as long as it wants it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hh"

namespace outboard {

/// Below TMPDIR if that is a full path, else below /tmp, also where the path would have more than `longest`
/// bytes. `name` and six characters that nobody else chose; mode 0700. The caller removes it.
result<std::string> make_temporary_folder(std::string_view name, std::size_t longest = 4096);

}  // namespace outboard
