// The objects of a CUDA session, found by their types and with CUDA's codes. As handle_tables.
#pragma once

#include "api/cuda/handles.hh"
#include "backend/session/handle_tables.hh"

namespace outboard::backend {

class object_tables final : public handle_tables {
 public:
  object_tables() : handle_tables([](api::handle_kind) { return std::int32_t{CUDA_ERROR_INVALID_HANDLE}; }) {}

  CUresult resolve(api::handle_kind kind, std::uint64_t value, void*& native) {
    return static_cast<CUresult>(native_of(kind, value, native));
  }
  template <class H>
  CUresult resolve(std::uint64_t value, H& native) {
    void* raw = nullptr;
    const CUresult code = resolve(api::handle_trait<H>::kind, value, raw);
    if (code == CUDA_SUCCESS) native = static_cast<H>(raw);
    return code;
  }
  /// Null, legacy and per-thread streams stand for themselves.
  CUresult resolve_stream(std::uint64_t value, CUstream& native) {
    if (value <= 2) return native = reinterpret_cast<CUstream>(value), CUDA_SUCCESS;
    return resolve(value, native);
  }
};

}  // namespace outboard::backend
