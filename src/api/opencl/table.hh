// function_table: one typed pointer for each core function of OpenCL, as a device or a test fills it. A plain
// value without threads of its own: fill it, then share it read-only.
#pragma once

#include <string_view>

#include "api/opencl/functions.hh"

namespace outboard::api::opencl {

struct function_table {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) decltype(&::symbol) symbol = nullptr;
#define OUTBOARD_CORE_LINES
#include "api/opencl/expand.def"
#undef OUTBOARD_CORE_LINES
#undef OUTBOARD_LINE
#undef CHAPTER
};

/// The entry of one function: entry_of<Op>::get(table).
template <opcode>
struct entry_of;
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...)                                   \
  template <>                                                             \
  struct entry_of<opcode::symbol> {                                       \
    static auto get(const function_table& table) { return table.symbol; } \
  };
#define OUTBOARD_CORE_LINES
#include "api/opencl/expand.def"
#undef OUTBOARD_CORE_LINES
#undef OUTBOARD_LINE
#undef CHAPTER

/// Fills every entry with what `find` gives for its name (NUL-terminated); null: it is not there.
template <class Find>
void fill(function_table& table, Find&& find) {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) \
  table.symbol = reinterpret_cast<decltype(table.symbol)>(find(std::string_view(#symbol)));
#define OUTBOARD_CORE_LINES
#include "api/opencl/expand.def"
#undef OUTBOARD_CORE_LINES
#undef OUTBOARD_LINE
#undef CHAPTER
}

}  // namespace outboard::api::opencl
