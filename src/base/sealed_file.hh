// Memory files that processes share: without a name, and sealed against shrinking and growing, so that no
// mapping of one ever loses its pages, whatever the other side does. Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fd.hh"

namespace outboard {

/// The file is zero, and has no pages until they are touched. Without a descriptor, errno says why.
unique_fd make_sealed_file(std::uint64_t size, const char* name);

/// The size of a file that can no longer change its size; nothing if the file is not sealed like that.
std::optional<std::uint64_t> size_of_sealed_file(int fd);

}  // namespace outboard
