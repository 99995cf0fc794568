// From opcode to handler: the generated handlers of CALL and POST lines, and the hand-written ones.
#include <vector>

#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

/// What a question about completion says, asked for a while: CUDA_ERROR_NOT_READY stands for calls that
/// cannot be asked, too.
template <api::opcode Op, class Execution>
CUresult ask_completion(call& c, Execution& e) {
  constexpr api::over over = api::function<Op>::about.over;
  if constexpr (over == api::over::stream) {
    const bool per_thread = api::per_thread(api::function<Op>::name);
    return c.session.waits().for_stream(c, e.template argument<0>(), per_thread);
  } else if constexpr (over == api::over::event) {
    return c.session.waits().for_event(c, e.template argument<0>());
  }
  return CUDA_ERROR_NOT_READY;
}

/// Tells in which stream the request leaves work, where its parameters say so.
template <api::opcode Op, class Execution>
void tell_work(call& c, const Execution& e) {
  constexpr const api::description& about = api::function<Op>::about;
  constexpr std::string_view name = api::function<Op>::name;
  if constexpr (about.creates == api::no_parameter && about.destroys == api::no_parameter &&
                about.arity > 0) {
    const auto first = e.template argument<0>();
    const auto last = e.template argument<about.arity - 1>();
    if constexpr (std::is_same_v<decltype(last), const CUstream>) {
      c.works_on(last, api::per_thread(name));
    } else if constexpr (std::is_same_v<decltype(first), const CUstream>) {
      c.works_on(first, api::per_thread(name));
    }
  }
}

template <api::opcode Op>
auto entry_of(const api::driver_table& table) {
  return reinterpret_cast<typename api::function<Op>::prototype*>(table.entry(Op));
}

template <api::opcode Op>
outcome generated(call& c) {
  constexpr const api::description& about = api::function<Op>::about;
  marshal::execution<Op> execution;
  marshal::decode_state state{c.body, c.objects(), c.scratch, static_cast<std::int32_t>(c.refused)};
  if (execution.decode(state) == marshal::decode_status::malformed) return outcome::malformed();
  auto code = static_cast<CUresult>(state.code);
  auto* entry = entry_of<Op>(c.driver());
  if (code == CUDA_SUCCESS && !entry) code = CUDA_ERROR_NOT_SUPPORTED;
  if (code == CUDA_SUCCESS) {
    CUresult complete = CUDA_SUCCESS;
    if constexpr (about.waits) complete = ask_completion<Op>(c, execution);
    if (complete == CUDA_ERROR_NOT_READY) c.give_up_turn();
    // The driver may wait for the device; who asks for more meanwhile is another thread of the program's.
    if (about.settles && c.header.kind == wire::frame_kind::call) c.give_up_turn();
    // A refusal is final: asked again, a lost capture has another answer. And what is known to be done needs
    // no wait, which costs 2 us more on a 580 driver, but for what kernels print: that comes out when one
    // waits.
    const bool known = complete != CUDA_ERROR_NOT_READY &&
                       (complete != CUDA_SUCCESS || (about.waits && !c.session.unseen().possible()));
    code = known ? complete : execution.run(entry);
    if constexpr (api::function<Op>::about.how == api::kind::post) tell_work<Op>(c, execution);
  }
  if constexpr (about.creates != api::no_parameter) {
    const bool kept = code == CUDA_SUCCESS
                          ? c.objects().create(state.created, execution.created(), c.as_record())
                          : c.objects().fail(state.created, code);
    if (!kept) return outcome::malformed();
  }
  if constexpr (about.destroys != api::no_parameter) {
    if (code == CUDA_SUCCESS) c.objects().erase(state.destroyed);
  }
  if (code == CUDA_SUCCESS) execution.encode_outputs(c.reply, c.objects());
  return outcome::answer(code);
}

/// Reads the request, as its line has it, and calls the hand-written handler with it.
template <class Request, auto* Handler>
outcome written(call& c) {
  if constexpr (marshal::hand_form<Request>) {
    return Handler(c);
  } else if constexpr (std::is_same_v<Request, marshal::nothing>) {
    return c.body.finished() ? Handler(c) : outcome::malformed();
  } else if constexpr (std::is_same_v<Request, marshal::raw_bytes>) {
    return Handler(c, c.body.bytes(c.body.rest().size()));
  } else {
    const auto body = marshal::take_body<marshal::body_of<Request>>(c.body);
    if constexpr (marshal::plain_form<Request>) {
      return c.body.finished() ? Handler(c, body) : outcome::malformed();
    } else {
      return c.body.ok() ? Handler(c, body, c.body.rest()) : outcome::malformed();
    }
  }
}

/// By opcode: a look-up is on the way of every request.
std::vector<handler> make_table() {
  std::vector<handler> table;
  const auto add = [&](std::uint32_t code, handler h) {
    if (code >= table.size()) table.resize(code + 1);
    table[code] = h;
  };
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_GENERATED_##how(symbol)
#define OUTBOARD_GENERATED_call(symbol) \
  add(static_cast<std::uint32_t>(api::opcode::symbol), &generated<api::opcode::symbol>);
#define OUTBOARD_GENERATED_post OUTBOARD_GENERATED_call
#define OUTBOARD_GENERATED_custom(symbol)
#define OUTBOARD_GENERATED_via(symbol)
#define OUTBOARD_GENERATED_local(symbol)
#define OUTBOARD_GENERATED_later(symbol)
#define OUTBOARD_GENERATED_refused(symbol)
#define OUTBOARD_MESSAGE(symbol, request_, reply_)     \
  add(static_cast<std::uint32_t>(api::opcode::symbol), \
      &written<marshal::message<api::opcode::symbol>::request, &ends::symbol>);
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
#define SERVICE(name, number, request_, reply_)           \
  add(static_cast<std::uint32_t>(marshal::service::name), \
      &written<marshal::message<marshal::service::name>::request, &ends::name>);
#include "marshal/cuda/services.def"
#undef SERVICE
  return table;
}

}  // namespace

handler find_handler(std::uint32_t opcode) {
  static const std::vector<handler> table = make_table();
  return opcode < table.size() ? table[opcode] : nullptr;
}

}  // namespace outboard::backend
