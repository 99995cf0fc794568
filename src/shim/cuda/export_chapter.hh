// Expands one chapter of the tables into exported symbols. Each function is a template instance over the
// vendor's prototype; its exported name is an alias that the assembler sets, so no parameter list is written
// twice. Each chapter's .cc includes it once.
#pragma once

#include <type_traits>

#include "base/alias.hh"
#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/own_context.hh"
#include "frontend/cuda/remote.hh"
#include "shim/cuda/traced.hh"

namespace outboard::shim {

/// What a line's function does, by its kind.
template <api::opcode Op, api::kind How>
struct end_of;

template <api::opcode Op>
struct end_of<Op, api::kind::call> {
  template <class... A>
  static CUresult run(A... arguments) {
    return frontend::cuda::remote<Op>(arguments...);
  }
};
template <api::opcode Op>
struct end_of<Op, api::kind::post> : end_of<Op, api::kind::call> {};

/// A LATER or REFUSED function: the symbol exists, says so once and returns CUDA_ERROR_NOT_SUPPORTED.
CUresult missing(api::opcode code);

}  // namespace outboard::shim

#define OUTBOARD_STUB(symbol, how, body)                                                                 \
  namespace {                                                                                            \
  template <class F>                                                                                     \
  struct stub_##symbol;                                                                                  \
  template <class R, class... A>                                                                         \
  struct stub_##symbol<R(A...)> {                                                                        \
    [[gnu::used]] static R entry(A... arguments) {                                                       \
      using outboard::api::opcode;                                                                       \
      return outboard::shim::traced<opcode::symbol>(                                                     \
          [&](A... a) -> CUresult {                                                                      \
            return outboard::frontend::cuda::in_its_context<opcode::symbol>([&] { return body; }, a...); \
          },                                                                                             \
          arguments...);                                                                                 \
    }                                                                                                    \
  };                                                                                                     \
  }                                                                                                      \
  OUTBOARD_EXPORT(symbol, (&stub_##symbol<decltype(::symbol)>::entry))

#define OUTBOARD_EXPORT_call(symbol) \
  OUTBOARD_STUB(symbol, call, (outboard::shim::end_of<opcode::symbol, outboard::api::kind::call>::run(a...)))
#define OUTBOARD_EXPORT_post OUTBOARD_EXPORT_call
#define OUTBOARD_EXPORT_custom(symbol)                                                           \
  OUTBOARD_STUB(symbol, custom, (outboard::frontend::cuda::unless_captured<opcode::symbol>([&] { \
                  return outboard::frontend::cuda::ends::symbol(a...);                           \
                })))
#define OUTBOARD_EXPORT_via OUTBOARD_EXPORT_custom
#define OUTBOARD_EXPORT_local OUTBOARD_EXPORT_custom
#define OUTBOARD_EXPORT_later(symbol)                              \
  [[gnu::used]] static CUresult missing_##symbol() {               \
    return outboard::shim::missing(outboard::api::opcode::symbol); \
  }                                                                \
  OUTBOARD_EXPORT(symbol, &missing_##symbol)
#define OUTBOARD_EXPORT_refused OUTBOARD_EXPORT_later

#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_EXPORT_##how(symbol)
#define CALL(symbol, ...) OUTBOARD_LINE(call, symbol)
#define POST(symbol, ...) OUTBOARD_LINE(post, symbol)
#define CUSTOM(symbol, ...) OUTBOARD_LINE(custom, symbol)
#define VIA(symbol, ...) OUTBOARD_LINE(via, symbol)
#define LOCAL(symbol, ...) OUTBOARD_LINE(local, symbol)
#define LATER(symbol, ...) OUTBOARD_LINE(later, symbol)
#define REFUSED(symbol, ...) OUTBOARD_LINE(refused, symbol)
