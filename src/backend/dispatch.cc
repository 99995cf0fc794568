// From opcode to handler: the generated handlers of CALL and POST lines, and the hand-written ones.
#include <unordered_map>

#include "backend/ends.hh"
#include "backend/patience.hh"
#include "backend/session_core.hh"

namespace outboard::backend {
namespace {

/// What a question about completion says, asked for a while: CUDA_ERROR_NOT_READY stands for calls that
/// cannot be asked, too.
template <api::opcode Op, class Execution>
CUresult ask_completion(call& c, Execution& e) {
  CUresult state = CUDA_ERROR_NOT_READY;
  if constexpr (Op == api::opcode::cuStreamSynchronize || Op == api::opcode::cuStreamSynchronize_ptsz) {
    auto* query =
        Op == api::opcode::cuStreamSynchronize ? c.driver().cuStreamQuery : c.driver().cuStreamQuery_ptsz;
    spin_while([&] { return (state = query(e.template argument<0>())) == CUDA_ERROR_NOT_READY; });
  } else if constexpr (Op == api::opcode::cuEventSynchronize) {
    spin_while(
        [&] { return (state = c.driver().cuEventQuery(e.template argument<0>())) == CUDA_ERROR_NOT_READY; });
  }
  return state;
}

template <api::opcode Op>
auto entry_of(const api::driver_table& table) {
  return reinterpret_cast<typename api::function<Op>::prototype*>(table.entry(Op));
}

template <api::opcode Op>
outcome generated(call& c) {
  constexpr const api::description& about = api::function<Op>::about;
  marshal::execution<Op> execution;
  marshal::decode_state state{c.body, c.objects(), c.scratch, c.refused};
  if (execution.decode(state) == marshal::decode_status::malformed) return outcome::malformed();
  CUresult code = state.code;
  auto* entry = entry_of<Op>(c.driver());
  if (code == CUDA_SUCCESS && !entry) code = CUDA_ERROR_NOT_SUPPORTED;
  if (code == CUDA_SUCCESS) {
    CUresult complete = CUDA_SUCCESS;
    if constexpr (about.waits) complete = ask_completion<Op>(c, execution);
    if (complete == CUDA_ERROR_NOT_READY) c.give_up_turn();
    // A refusal is final: asked again, a lost capture has another answer.
    const bool refused = complete != CUDA_SUCCESS && complete != CUDA_ERROR_NOT_READY;
    code = refused ? complete : execution.run(entry);
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

template <api::opcode Op, api::kind How>
handler generated_for() {
  if constexpr (How == api::kind::call || How == api::kind::post) return &generated<Op>;
  return nullptr;
}

std::unordered_map<std::uint32_t, handler> make_table() {
  std::unordered_map<std::uint32_t, handler> table;
  const auto add = [&](std::uint32_t code, handler h) {
    if (h) table[code] = h;
  };
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) \
  add(static_cast<std::uint32_t>(api::opcode::symbol), generated_for<api::opcode::symbol, api::kind::how>());
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
#define HANDLER(symbol) add(static_cast<std::uint32_t>(api::opcode::symbol), &ends::symbol);
#define SERVICE(name) add(static_cast<std::uint32_t>(marshal::service::name), &ends::name);
#include "backend/handlers.def"
#undef HANDLER
#undef SERVICE
  return table;
}

}  // namespace

handler find_handler(std::uint32_t opcode) {
  static const std::unordered_map<std::uint32_t, handler> table = make_table();
  const auto found = table.find(opcode);
  return found == table.end() ? nullptr : found->second;
}

}  // namespace outboard::backend
