// Memory files that processes share: without a name, sealed against shrinking and growing, so that no mapping
// of one ever loses its pages, whatever the other side does. Any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fd.hh"

namespace outboard {

/// Zero, and without pages until they are touched. No descriptor: errno says why.
unique_fd make_sealed_file(std::uint64_t size, const char* name);

/// Of a file that cannot change its size any more; nothing: it is none.
std::optional<std::uint64_t> size_of_sealed_file(int fd);

}  // namespace outboard
