// One typed pointer for each NVML function; a device or a test fills the table. It is a plain value: fill it,
// then share it read-only. Refused functions have no entry.
#pragma once

#include "api/nvml/functions.hh"

namespace outboard::api::nvml {

struct function_table {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_ENTRY_##how(symbol)
#define OUTBOARD_ENTRY_call(symbol) decltype(&prototypes::symbol) symbol = nullptr;
#define OUTBOARD_ENTRY_custom OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_local OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_refused(symbol)
#include "api/nvml/expand.def"
#undef OUTBOARD_ENTRY_call
#undef OUTBOARD_ENTRY_custom
#undef OUTBOARD_ENTRY_local
#undef OUTBOARD_ENTRY_refused
#undef OUTBOARD_LINE
#undef CHAPTER
};

/// Calls visit(context, name, slot) for every entry in opcode order; the value that it leaves in *slot
/// becomes the pointer. `name` is NUL-terminated.
void for_each_entry(function_table& table, void (*visit)(void* context, std::string_view name, void** slot),
                    void* context);

}  // namespace outboard::api::nvml
