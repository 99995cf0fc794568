// The hand-written handlers by opcode, each behind the wrapper that its line asks for (received.hh). Apart
// from dispatch.cc, where the generated ones are, because either takes the compiler long.
#include "backend/cuda/ends.hh"

namespace outboard::backend {
namespace {

template <api::opcode Op, auto* End>
constexpr handler received_by() {
  if constexpr (api::function<Op>::about.travel.request.empty()) {
    return nullptr;
  } else {
    return &received<Op, End>;
  }
}

constexpr bound_handler all[] = {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_RECEIVED_##how(symbol)
#define OUTBOARD_RECEIVED_custom(symbol) \
  {static_cast<std::uint32_t>(api::opcode::symbol), received_by<api::opcode::symbol, &ends::symbol>()},
#define OUTBOARD_RECEIVED_call(symbol)
#define OUTBOARD_RECEIVED_post(symbol)
#define OUTBOARD_RECEIVED_local(symbol)
#define OUTBOARD_RECEIVED_refused(symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_RECEIVED_custom
#undef OUTBOARD_RECEIVED_call
#undef OUTBOARD_RECEIVED_post
#undef OUTBOARD_RECEIVED_local
#undef OUTBOARD_RECEIVED_refused
#undef OUTBOARD_LINE
#undef CHAPTER
#define SERVICE(name, ...) \
  {static_cast<std::uint32_t>(marshal::service::name), &received<marshal::service::name, &ends::name>},
#include "marshal/cuda/services.def"
#undef SERVICE
};

}  // namespace

std::span<const bound_handler> hand_written_handlers() { return all; }

}  // namespace outboard::backend
