// What derives from the tables for every function: opcode, name, prototype, description. A misfit between a
// line and the vendor's prototype is a compile error of functions.cc that names the function. Compile-time
// only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "api/cuda/handles.hh"
#include "api/cuda/headers.hh"
#include "api/describe.hh"
#include "api/prototype.hh"

namespace outboard::api {

/// Opcodes: chapter number x 1000 + position in the chapter's file. They travel; append-only (golden test).
enum class opcode : std::uint32_t {
  none = 0,
#define CHAPTER(number, file) chapter_##file = number * 1000 - 1,
#define OUTBOARD_LINE(how, symbol, ...) symbol,
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
};

/// The entry of a function for programs whose default stream is the thread's own.
constexpr bool per_thread(std::string_view name) {
  return name.ends_with("_ptsz") || name.ends_with("_ptds");
}

/// The name of the chapter an opcode belongs to, empty if none.
constexpr std::string_view chapter_name(opcode code) {
  switch (static_cast<std::uint32_t>(code) / 1000) {
#define CHAPTER(number, file) \
  case number:                \
    return #file;
#define OUTBOARD_LINE(how, symbol, ...)
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
    default:
      return {};
  }
}

/// One function as data, for the trace, the coverage page, the mock and the fuzz targets.
struct function_info {
  opcode code;
  std::string_view name;     ///< NUL-terminated
  std::string_view chapter;  ///< name of the chapter's file without .def
  std::string_view
      text;  ///< the annotation as written; for a refused line the family (coverage.hh has its reason)
  const description& about;  ///< of a later or refused line only `how` says something
};

/// All functions in opcode order. Static storage; any thread.
std::span<const function_info> functions();

/// The function with this opcode, or nullptr (any number may come from a peer).
const function_info* find_function(std::uint32_t code);

/// What the line of the function with this opcode says. Of other requests (services): nothing.
const description& about(opcode code);

/// The function with this exported symbol, or nullptr.
const function_info* find_function(std::string_view symbol);

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_DESCRIBE_##how(how, symbol, #__VA_ARGS__)
#define OUTBOARD_DESCRIBE_later(how, symbol, text)
#define OUTBOARD_DESCRIBE_refused(how, symbol, text)
#define OUTBOARD_DESCRIBE_call OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_post OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_custom OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_via OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_local OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE(kind_, symbol, text_) \
  OUTBOARD_DESCRIBE_FUNCTION(opcode, decltype(::symbol), kind_, symbol, text_)
#include "api/cuda/expand.def"
#undef OUTBOARD_DESCRIBE_later
#undef OUTBOARD_DESCRIBE_refused
#undef OUTBOARD_DESCRIBE_call
#undef OUTBOARD_DESCRIBE_post
#undef OUTBOARD_DESCRIBE_custom
#undef OUTBOARD_DESCRIBE_via
#undef OUTBOARD_DESCRIBE_local
#undef OUTBOARD_DESCRIBE
#undef OUTBOARD_LINE
#undef CHAPTER

}  // namespace outboard::api
