#include <algorithm>

#include "backend/nvml/shield.hh"

namespace outboard::backend::nvml {
namespace {

using namespace api::nvml;

/// The front-end asks again: an answer that takes long would hold up the client's other threads.
constexpr unsigned longest_wait_ms = 50;

template <auto Entry, class Handle>
nvmlReturn_t create(Handle* made) {
  visitor& own = current_visitor();
  auto* const real = own.real().*Entry;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  if (own.is_full(kind_of<Handle>)) return NVML_ERROR_MEMORY;
  return real(made);
}

template <auto Entry, class Handle>
nvmlReturn_t destroy(Handle gone) {
  auto* const real = current_visitor().real().*Entry;
  if (!real) return NVML_ERROR_NOT_SUPPORTED;
  const nvmlReturn_t code = real(gone);
  if (code == NVML_SUCCESS) current_visitor().forget(kind_of<Handle>, gone);
  return code;
}

template <auto Entry, class Data>
nvmlReturn_t wait(nvmlEventSet_t set, Data* data, unsigned milliseconds) {
  auto* const real = current_visitor().real().*Entry;
  return real ? real(set, data, std::min(milliseconds, longest_wait_ms)) : NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace

void shield_objects(function_table& t) {
  t.nvmlEventSetCreate = create<&function_table::nvmlEventSetCreate>;
  t.nvmlEventSetFree = destroy<&function_table::nvmlEventSetFree>;
  t.nvmlEventSetWait = wait<&function_table::nvmlEventSetWait>;
  t.nvmlEventSetWait_v2 = wait<&function_table::nvmlEventSetWait_v2>;
  t.nvmlGpmSampleAlloc = create<&function_table::nvmlGpmSampleAlloc>;
  t.nvmlGpmSampleFree = destroy<&function_table::nvmlGpmSampleFree>;
}

const function_table& shielded() {
  static const function_table table = [] {
    function_table t;
    shield_devices(t);
    shield_processes(t);
    shield_shape(t);
    shield_objects(t);
    return t;
  }();
  return table;
}

}  // namespace outboard::backend::nvml
