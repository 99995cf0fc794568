#include "api/opencl/functions.hh"

#include <algorithm>

#include "api/line_checks.hh"

namespace outboard::api::opencl {
namespace {

[[maybe_unused]] constexpr description later_description = parse(kind::later, "");

constexpr std::string_view chapter_of(opcode code) {
  switch (static_cast<std::uint32_t>(code) / 1000) {
#define CHAPTER(number, file) \
  case number:                \
    return #file;
#define OUTBOARD_LINE(how, symbol, ...)
#include "api/opencl/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
    default:
      return {};
  }
}

#define OUTBOARD_ABOUT_call(symbol) function<opcode::symbol>::about
#define OUTBOARD_ABOUT_post OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_custom OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_local OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_later(symbol) later_description

// Every line with a prototype, against it.
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_CHECK_##how(symbol)
#define OUTBOARD_CHECK_call(symbol) OUTBOARD_CHECK_FUNCTION(opcode, symbol)
#include "api/opencl/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER

// In opcode order, because chapters stand in the order of their numbers.
constexpr function_info table[] = {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) \
  {opcode::symbol, #symbol, chapter_of(opcode::symbol), OUTBOARD_ABOUT_##how(symbol)},
#include "api/opencl/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
};

}  // namespace

std::span<const function_info> functions() { return table; }

const function_info* find_function(std::uint32_t code) {
  const auto* at = std::ranges::lower_bound(table, static_cast<opcode>(code), {}, &function_info::code);
  return at != std::end(table) && at->code == static_cast<opcode>(code) ? at : nullptr;
}

const function_info* find_function(std::string_view symbol) {
  const auto* at = std::ranges::find(table, symbol, &function_info::name);
  return at != std::end(table) ? at : nullptr;
}

}  // namespace outboard::api::opencl
