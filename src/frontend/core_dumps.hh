// Where pieces of core dumps go: nowhere, until the program has asked for dumps. Any thread.
#pragma once

#include <atomic>
#include <string_view>

namespace outboard::frontend {

/// Takes a piece, the empty one behind the last, on the thread that reads the connection. A piece that comes
/// before one is set is dropped: it was not asked for.
using core_dump_taker = void (*)(std::string_view piece);
extern std::atomic<core_dump_taker> core_dumps;

}  // namespace outboard::frontend
