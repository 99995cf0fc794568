#include "shim/cuda/exports.hh"

#include <algorithm>
#include <atomic>
#include <vector>

#include "api/cuda/functions.hh"
#include "base/log.hh"

// These must not be hidden, because the linker takes the strictest visibility that it sees, and they are our
// exports. They are declared by name only: this file needs just the addresses, and the headers have other
// types for the same names.
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) \
  extern "C" __attribute__((visibility("default"))) const char address_of_##symbol __asm__(#symbol);
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER

namespace outboard::shim {
namespace {

struct entry {
  std::string_view name;
  const void* address;
};

const std::vector<entry>& sorted() {
  static const std::vector<entry>* const table = [] {
    auto* made = new std::vector<entry>{
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) {#symbol, &address_of_##symbol},
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
    };
    std::sort(made->begin(), made->end(), [](const entry& a, const entry& b) { return a.name < b.name; });
    return made;
  }();
  return *table;
}

}  // namespace

void* find_export(std::string_view symbol) {
  const auto& table = sorted();
  const auto found = std::lower_bound(table.begin(), table.end(), symbol,
                                      [](const entry& e, std::string_view s) { return e.name < s; });
  return found != table.end() && found->name == symbol ? const_cast<void*>(found->address) : nullptr;
}

CUresult missing(api::opcode code) {
  static std::atomic<bool> reported[30000];
  const auto number = static_cast<std::size_t>(code);
  if (number < std::size(reported) && !reported[number].exchange(true)) {
    if (const api::function_info* f = api::find_function(static_cast<std::uint32_t>(code))) {
      log::error(f->name, " is not implemented: it returns CUDA_ERROR_NOT_SUPPORTED");
    }
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace outboard::shim
