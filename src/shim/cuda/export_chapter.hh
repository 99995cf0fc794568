// Expands one chapter of the tables into exported symbols. Each function is a template instance over the
// vendor's prototype; its exported name is an alias that the assembler sets, so no parameter list is written
// twice. Each chapter's file includes it once.
#pragma once

#include <type_traits>

#include "base/alias.hh"
#include "frontend/cuda/entry.hh"
#include "shim/cuda/traced.hh"

namespace outboard::shim {

/// A REFUSED function: the symbol exists, logs once that it is not supported, and returns
/// CUDA_ERROR_NOT_SUPPORTED.
CUresult missing(api::opcode code);

}  // namespace outboard::shim

#define OUTBOARD_STUB(symbol, entered)                                                          \
  namespace {                                                                                   \
  template <class F>                                                                            \
  struct stub_##symbol;                                                                         \
  template <class R, class... A>                                                                \
  struct stub_##symbol<R(A...)> {                                                               \
    [[gnu::used]] static R entry(A... arguments) {                                              \
      using outboard::api::opcode;                                                              \
      namespace cuda = outboard::frontend::cuda;                                                \
      return outboard::shim::traced<opcode::symbol>([](A... a) -> CUresult { return entered; }, \
                                                    arguments...);                              \
    }                                                                                           \
  };                                                                                            \
  }                                                                                             \
  OUTBOARD_EXPORT(symbol, (&stub_##symbol<decltype(::symbol)>::entry))

#define OUTBOARD_EXPORT_call(symbol) OUTBOARD_STUB(symbol, cuda::enter_generated<opcode::symbol>(a...))
#define OUTBOARD_EXPORT_post OUTBOARD_EXPORT_call
#define OUTBOARD_EXPORT_custom(symbol) \
  OUTBOARD_STUB(symbol,                \
                cuda::enter_hand_written<opcode::symbol>([&] { return cuda::ends::symbol(a...); }, a...))
#define OUTBOARD_EXPORT_local OUTBOARD_EXPORT_custom
#define OUTBOARD_EXPORT_refused(symbol)                            \
  [[gnu::used]] static CUresult missing_##symbol() {               \
    return outboard::shim::missing(outboard::api::opcode::symbol); \
  }                                                                \
  OUTBOARD_EXPORT(symbol, &missing_##symbol)

#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_EXPORT_##how(symbol)
#define CALL(symbol, ...) OUTBOARD_LINE(call, symbol)
#define POST(symbol, ...) OUTBOARD_LINE(post, symbol)
#define CUSTOM(symbol, ...) OUTBOARD_LINE(custom, symbol)
#define LOCAL(symbol, ...) OUTBOARD_LINE(local, symbol)
#define REFUSED(symbol, ...) OUTBOARD_LINE(refused, symbol)
