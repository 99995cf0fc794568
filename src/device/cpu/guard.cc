// Entries that a capture forbids (the word `unsafe` of their lines) refuse themselves while one is open,
// whatever chapter they belong to.
#include "device/cpu/graph/capture.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

/// The entries as their files made them.
api::driver_table& unguarded() {
  static api::driver_table table;
  return table;
}

template <auto Member, class F>
struct guarded;

template <auto Member, class... A>
struct guarded<Member, CUresult(A...)> {
  static CUresult CUDAAPI call(A... arguments) {
    if (const CUresult r = capture_forbids_unsafe(); r != CUDA_SUCCESS) return r;
    return (unguarded().*Member)(arguments...);
  }
};

/// These become nodes themselves (the front-end only has to wait for their answer), or look at more first.
constexpr bool captured_itself(const api::description& about) {
  return about.itself || api::copies(about.leaves) || about.leaves == api::left_work::fills;
}

template <api::opcode Op, auto Member, class F>
void guard(api::driver_table& table) {
  if constexpr (requires { api::function<Op>::about; }) {
    if constexpr (api::function<Op>::about.unsafe && !captured_itself(api::function<Op>::about)) {
      if (table.*Member != nullptr) table.*Member = &guarded<Member, F>::call;
    }
  }
}

}  // namespace

void guard_entries(api::driver_table& table) {
  unguarded() = table;
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_GUARD_##how(symbol)
#define OUTBOARD_GUARD_call(symbol) \
  guard<api::opcode::symbol, &api::driver_table::symbol, decltype(::symbol)>(table);
#define OUTBOARD_GUARD_post OUTBOARD_GUARD_call
#define OUTBOARD_GUARD_custom OUTBOARD_GUARD_call
#define OUTBOARD_GUARD_via OUTBOARD_GUARD_call
#define OUTBOARD_GUARD_local OUTBOARD_GUARD_call
#define OUTBOARD_GUARD_later(symbol)
#define OUTBOARD_GUARD_refused(symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_GUARD_call
#undef OUTBOARD_GUARD_post
#undef OUTBOARD_GUARD_custom
#undef OUTBOARD_GUARD_via
#undef OUTBOARD_GUARD_local
#undef OUTBOARD_GUARD_later
#undef OUTBOARD_GUARD_refused
#undef OUTBOARD_LINE
#undef CHAPTER
}

}  // namespace outboard::device::cpu
