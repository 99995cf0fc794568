// The functions of the driver API by their names, as the front-end has them, without the library that exports
// them.
#pragma once

#include "frontend/cuda/chapters/capture.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/own_context.hh"
#include "frontend/cuda/remote.hh"

namespace outboard::fuzz::driver {

template <api::opcode Op, class Function>
struct remote_end;
template <api::opcode Op, class... A>
struct remote_end<Op, CUresult(A...)> {
  CUresult operator()(A... arguments) const {
    return frontend::cuda::in_its_context<Op>([&] { return frontend::cuda::remote<Op>(arguments...); },
                                              arguments...);
  }
};

template <api::opcode Op, auto* End, class Function>
struct written_end;
template <api::opcode Op, auto* End, class... A>
struct written_end<Op, End, CUresult(A...)> {
  CUresult operator()(A... arguments) const {
    return frontend::cuda::in_its_context<Op>(
        [&] { return frontend::cuda::unless_captured<Op>([&] { return End(arguments...); }); }, arguments...);
  }
};

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_END_##how(symbol)
#define OUTBOARD_END_call(symbol) \
  inline constexpr remote_end<api::opcode::symbol, decltype(::symbol)> symbol{};
#define OUTBOARD_END_post(symbol) OUTBOARD_END_call(symbol)
#define OUTBOARD_END_custom(symbol)                                                                    \
  inline constexpr written_end<api::opcode::symbol, &frontend::cuda::ends::symbol, decltype(::symbol)> \
      symbol{};
#define OUTBOARD_END_local(symbol) OUTBOARD_END_custom(symbol)
#define OUTBOARD_END_later(symbol)
#define OUTBOARD_END_refused(symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_END_call
#undef OUTBOARD_END_post
#undef OUTBOARD_END_custom
#undef OUTBOARD_END_local
#undef OUTBOARD_END_later
#undef OUTBOARD_END_refused
#undef OUTBOARD_LINE
#undef CHAPTER

}  // namespace outboard::fuzz::driver
