// OUTBOARD_TRACE=file: every API call with its arguments, how it was answered, how long it took and in which
// lane; behind a pointer and a colon, the handle or address that the call returned. The file ends with a
// summary: `sent N bytes, received N bytes`, and last `local N, posted N, waited N`. Any thread; costs one
// load of a flag when off.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>

#include "api/cuda/headers.hh"
#include "api/describe.hh"
#include "frontend/call_watch.hh"
#include "frontend/lane.hh"

namespace outboard::frontend {

struct traffic;

namespace trace {

enum class form : std::uint8_t { signed_number, unsigned_number, address, real, text, pointer, launch };

/// One argument as the formatter sees it. `text` points at the program's string and `launch` at its
/// CUlaunchConfig; nothing is read through `pointer`. `given` is what a call that succeeded returned through
/// it: a handle or an address.
struct argument {
  form as = form::unsigned_number;
  std::uint64_t bits = 0;
  double number = 0;
  std::uint64_t given = 0;
  bool gives = false;
};

inline bool on() { return calls_watched_by(call_watcher::trace); }
/// Opens the file unless a trace is being written or was tried already; a file that cannot be opened is an
/// error on stderr and no trace. %p in the name is the process's number, - is stderr. If the name begins with
/// +, an existing file stays: the process's number is added to the name, and a line on stderr says so.
void start(const char* file);
/// Writes the summary and closes. A disk that filled up is reported once.
void finish(const traffic& moved);
/// In a forked child: the trace is the parent's.
void forked();

void record(std::string_view name, const api::description& about, std::span<const argument> arguments,
            std::int32_t result, answered how, std::chrono::nanoseconds took, std::uint32_t lane);

}  // namespace trace
}  // namespace outboard::frontend
