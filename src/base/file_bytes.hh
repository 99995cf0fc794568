// The bytes of an open file, whole, by the system's calls alone: front-end libraries run in programs whose
// C++ library may be older than ours. Any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.hh"

namespace outboard {

/// What is left of it, at most `most` bytes. Errors name `path`.
result<std::string> read_whole(int file, const std::string& path, std::size_t most);

/// False: errno says why.
bool write_whole(int file, std::string_view bytes);

}  // namespace outboard
