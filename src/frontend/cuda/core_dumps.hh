// Where pieces of core dumps go: nowhere, until somebody has asked for dumps. Any thread.
#pragma once

#include <atomic>
#include <string_view>

namespace outboard::frontend {

/// Takes a piece of a dump, on the thread that reads the connection; an empty piece follows the last. A piece
/// that comes before a taker is set is dropped: no dump was asked for.
using core_dump_taker = void (*)(std::string_view piece);
extern std::atomic<core_dump_taker> core_dumps;

}  // namespace outboard::frontend
