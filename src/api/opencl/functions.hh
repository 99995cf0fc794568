// What derives from the OpenCL tables for every function: opcode, name, prototype, description. A misfit
// between a line and the headers' prototype is a compile error of functions.cc that names the function.
// Compile-time only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "api/opencl/handles.hh"
#include "api/prototype.hh"

namespace outboard::api::opencl {

/// Opcodes: chapter number x 1000 + position in the chapter's file. They travel; append-only (golden test).
enum class opcode : std::uint32_t {
  none = 0,
#define CHAPTER(number, file) chapter_##file = number * 1000 - 1,
#define OUTBOARD_LINE(how, symbol, ...) symbol,
#include "api/opencl/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
};

/// Requests that are no function of the API. Numbers in a chapter of their own; append-only.
enum class service : std::uint32_t {
  upload = 200000,         ///< post: bytes that a later request of the same session names
  settle_memory = 200001,  ///< call: released memory that commands may still use comes back, if it is needed
  build_files = 200002,    ///< post: the client's files for the lane's next build
  open_area = 200003,      ///< call: memory that both ends have, its descriptor comes before the reply
  close_area = 200004,     ///< post
  await_area = 200005,     ///< call: a block of one is of no command any more
  read_into = 200006,      ///< post or call: clEnqueueReadBuffer, whose bytes lie in an area then
  write_from = 200007,     ///< post: clEnqueueWriteBuffer, whose bytes lie in an area
  data_open = 200008,      ///< call: takes further connections of the client's for a context
  write_piece = 200009,    ///< post: clEnqueueWriteBuffer, whose bytes came over one of them
  read_piece = 200010,     ///< post: clEnqueueReadBuffer, whose bytes go over one of them
  catch_up = 200011,       ///< call: the bytes of reads that are complete come before the reply
  profile_start = 200012,  ///< call: what commands do is recorded from now on, as marshal::service has it
  profile_stop = 200013,   ///< call: no more
  profile_take = 200014,   ///< call: the records of those that are over
};

struct function_info {
  opcode code;
  std::string_view name;     ///< NUL-terminated
  std::string_view chapter;  ///< name of the chapter's file without .def
  const description& about;  ///< of a later line only `how` says something
};

/// All functions in opcode order. Static storage; any thread.
std::span<const function_info> functions();

/// The function with this opcode or symbol, or nullptr (any number may come from a peer).
const function_info* find_function(std::uint32_t code);
const function_info* find_function(std::string_view symbol);

}  // namespace outboard::api::opencl

namespace outboard::api {

/// There size_t and cl_uint are one type, and here they are two.
template <>
inline constexpr bool integers_travel_wide<opencl::opcode> = true;

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_DESCRIBE_##how(how, symbol, #__VA_ARGS__)
#define OUTBOARD_DESCRIBE_later(how, symbol, text)
#define OUTBOARD_DESCRIBE_call OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_post OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_custom OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_local OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE(kind_, symbol, text_) \
  OUTBOARD_DESCRIBE_FUNCTION(opencl::opcode, decltype(::symbol), kind_, symbol, text_)
#include "api/opencl/expand.def"
#undef OUTBOARD_DESCRIBE_later
#undef OUTBOARD_DESCRIBE_call
#undef OUTBOARD_DESCRIBE_post
#undef OUTBOARD_DESCRIBE_custom
#undef OUTBOARD_DESCRIBE_local
#undef OUTBOARD_DESCRIBE
#undef OUTBOARD_LINE
#undef CHAPTER

}  // namespace outboard::api
