#include "api/nvml/table.hh"

namespace outboard::api::nvml {
namespace {

using visitor = void (*)(void* context, std::string_view name, void** slot);

// Copies through a void* by value, so that the slot is never accessed as an object of another type.
template <class F>
void visit_entry(F*& entry, std::string_view name, visitor visit, void* context) {
  void* slot = reinterpret_cast<void*>(entry);
  visit(context, name, &slot);
  entry = reinterpret_cast<F*>(slot);
}

}  // namespace

void for_each_entry(function_table& table, visitor visit, void* context) {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_ENTRY_##how(symbol)
#define OUTBOARD_ENTRY_call(symbol) visit_entry(table.symbol, #symbol, visit, context);
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
}

}  // namespace outboard::api::nvml
