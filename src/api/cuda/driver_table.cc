#include "api/cuda/driver_table.hh"

namespace outboard::api {
namespace {

using visitor = void (*)(void* context, std::string_view name, void** slot);

// By value through a void* and back: the slot is never a misread function pointer object.
template <class F>
void visit_entry(F*& entry, std::string_view name, visitor visit, void* context) {
  void* slot = reinterpret_cast<void*>(entry);
  visit(context, name, &slot);
  entry = reinterpret_cast<F*>(slot);
}

}  // namespace

#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_ENTRY_##how(symbol)
#define OUTBOARD_ENTRY_post OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_custom OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_via OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_local OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_later OUTBOARD_ENTRY_call
#define OUTBOARD_ENTRY_refused(symbol)
#define CHAPTER(number, file)

void* driver_table::entry(opcode code) const {
  switch (code) {
#define OUTBOARD_ENTRY_call(symbol) \
  case opcode::symbol:              \
    return reinterpret_cast<void*>(symbol);
#include "api/cuda/expand.def"
#undef OUTBOARD_ENTRY_call
    default:
      return nullptr;
  }
}

void for_each_entry(driver_table& table, visitor visit, void* context) {
#define OUTBOARD_ENTRY_call(symbol) visit_entry(table.symbol, #symbol, visit, context);
#include "api/cuda/expand.def"
#undef OUTBOARD_ENTRY_call
}

}  // namespace outboard::api
