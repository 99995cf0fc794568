// driver_table: one typed pointer a driver function, as a device or a test fills it. A plain value without
// threads of its own: fill it, then share it read-only. Refused functions have no entry (their headers are
// not needed to build).
#pragma once

#include <string_view>
#include <type_traits>

#include "api/cuda/functions.hh"
#include "api/cuda/headers.hh"

namespace outboard::api {

struct driver_table {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_ENTRY_##how(symbol)
#define OUTBOARD_ENTRY_call(symbol) decltype(&::symbol) symbol = nullptr;
#define OUTBOARD_ENTRY_post OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_custom OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_via OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_local OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_later OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_refused(symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_ENTRY_call
#undef OUTBOARD_ENTRY_post
#undef OUTBOARD_ENTRY_custom
#undef OUTBOARD_ENTRY_via
#undef OUTBOARD_ENTRY_local
#undef OUTBOARD_ENTRY_later
#undef OUTBOARD_ENTRY_refused
#undef OUTBOARD_LINE
#undef CHAPTER

  /// The pointer of this function, or nullptr (not filled, refused, or no such opcode).
  void* entry(opcode code) const;
};

/// Calls visit(context, name, slot) for every entry in opcode order; what it leaves in *slot becomes the
/// pointer. `name` is NUL-terminated.
void for_each_entry(driver_table& table, void (*visit)(void* context, std::string_view name, void** slot),
                    void* context);

/// The same with any callable (std::string_view name, void** slot).
template <class Visit>
void for_each_entry(driver_table& table, Visit&& visit) {
  using callable = std::remove_reference_t<Visit>;
  for_each_entry(
      table,
      [](void* context, std::string_view name, void** slot) {
        (*static_cast<callable*>(context))(name, slot);
      },
      const_cast<std::remove_const_t<callable>*>(&visit));
}

}  // namespace outboard::api
