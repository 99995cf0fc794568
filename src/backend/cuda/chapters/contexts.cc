// Handlers of the context chapters. The front-end keeps the states; what comes here is what the driver must
// know.
#include "backend/cuda/arrays.hh"
#include "backend/cuda/code/code.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/session.hh"

namespace outboard::backend {
namespace {

/// Precondition of every request on a device: the ordinal is one of the session's.
bool known_device(call& c, std::int32_t device) {
  return device >= 0 && static_cast<std::size_t>(device) < c.session.facts().devices.size();
}

template <class... A>
CUresult invoke(CUresult (*entry)(A...), std::type_identity_t<A>... arguments) {
  return entry ? entry(arguments...) : CUDA_ERROR_NOT_SUPPORTED;
}

/// Objects of a context die with it. Streams, events and modules hold nothing of ours beyond their table
/// entries.
void forget_context(call& c, std::uint64_t handle) {
  c.session.mirrors().drop_context(handle);
  c.session.mirrors().drop_stale();
  c.session.captured_copies().drop_context(handle);
  c.session.memory().drop_context(handle, false);
  c.core.data().drop_context(handle);
  c.session.stage().drop_context(handle);
  c.session.waits().drop_context(handle);
  for (const api::handle_kind kind : {api::handle_kind::stream, api::handle_kind::event})
    c.objects().bury(kind, handle, CUDA_ERROR_CONTEXT_IS_DESTROYED);
  forget_code_of_context(c.objects(), handle);
  c.session.uses().forget_context(c.objects(), handle);
  forget_arrays_of_context(c.objects(), handle);
  c.objects().erase(handle);
  c.session.contexts_changed();
  c.session.forget_sticky(handle);
}

/// While the driver still takes back what it has locked, and before variables go with their modules.
void drop_mirrors(call& c, std::uint64_t context) {
  c.session.mirrors().drop_within(managed_variables_of_context(c, context));
  c.session.mirrors().drop_context(context);
}

/// Copies to the host that nobody has waited for: the driver must not be asked for their events once the
/// context is gone. Their blocks are given back after it.
class ending_copies {
 public:
  ending_copies(call& c, std::uint64_t context) : call_(c) {
    c.session.outgoing_copies().flush();
    blocks_ = c.session.outgoing_copies().take_out(context);
  }
  ~ending_copies() {
    for (const staging::block& block : blocks_) call_.session.stage().give_back(block);
  }
  ending_copies(const ending_copies&) = delete;
  ending_copies& operator=(const ending_copies&) = delete;

 private:
  call& call_;
  std::vector<staging::block> blocks_;
};

outcome made(call& c, std::uint64_t handle, CUresult code, CUcontext native) {
  const bool kept = code == CUDA_SUCCESS ? c.objects().create(handle, native, c.as_record())
                                         : c.objects().fail(handle, code);
  return kept ? outcome::answer(code) : outcome::malformed();
}

}  // namespace

outcome ends::cuDevicePrimaryCtxRetain(call& c, const marshal::context_body& body) {
  if (!known_device(c, body.device)) return outcome::malformed();
  CUcontext native = nullptr;
  const CUresult code = invoke(c.driver().cuDevicePrimaryCtxRetain, &native, body.device);
  return made(c, body.handle, code, native);
}

outcome ends::cuDevicePrimaryCtxRelease_v2(call& c, const marshal::context_body& body) {
  if (!known_device(c, body.device)) return outcome::malformed();
  // Taking a context down costs the driver a tenth of a second and more: not for a program that is about to
  // end.
  if (c.core.client_is_leaving()) return outcome::answer(CUDA_SUCCESS);
  const ending_copies copies(c, body.handle);
  drop_mirrors(c, body.handle);
  c.session.captured_copies().drop_context(body.handle);
  c.session.memory().drop_context(body.handle, true);
  const CUresult code = invoke(c.driver().cuDevicePrimaryCtxRelease_v2, body.device);
  forget_context(c, body.handle);
  return outcome::answer(code);
}

outcome ends::cuDevicePrimaryCtxReset_v2(call& c, const marshal::context_body& body) {
  if (!known_device(c, body.device)) return outcome::malformed();
  const ending_copies copies(c, body.handle);
  drop_mirrors(c, body.handle);
  const CUresult code = invoke(c.driver().cuDevicePrimaryCtxReset_v2, body.device);
  forget_context(c, body.handle);
  c.session.virtual_memory().context_reset(body.device);
  return outcome::answer(code);
}

outcome ends::cuDevicePrimaryCtxSetFlags_v2(call& c, const marshal::context_body& body) {
  if (!known_device(c, body.device)) return outcome::malformed();
  const unsigned flags = c.session.dumps().allowed_context_flags(body.flags);
  return outcome::answer(invoke(c.driver().cuDevicePrimaryCtxSetFlags_v2, body.device, flags));
}

outcome ends::cuCtxCreate_v2(call& c, const marshal::context_body& body) {
  if (!known_device(c, body.device)) return outcome::malformed();
  CUcontext native = nullptr;
  const unsigned flags = c.session.dumps().allowed_context_flags(body.flags);
  const CUresult code = invoke(c.driver().cuCtxCreate_v2, &native, flags, body.device);
  c.own.context = 0;  // creating made it current on this thread
  return made(c, body.handle, code, native);
}

outcome ends::cuCtxDestroy_v2(call& c, const marshal::handle_body& body) {
  CUcontext native = nullptr;
  if (const CUresult code = c.objects().resolve(body.handle, native); code != CUDA_SUCCESS)
    return outcome::answer(code);
  const ending_copies copies(c, body.handle);
  drop_mirrors(c, body.handle);
  c.session.captured_copies().drop_context(body.handle);
  c.session.memory().drop_context(body.handle, true);
  const CUresult code = invoke(c.driver().cuCtxDestroy_v2, native);
  forget_context(c, body.handle);
  return outcome::answer(code);
}

outcome ends::cuCtxSetLimit(call& c, const marshal::limit_body& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  const auto limit = static_cast<CUlimit>(body.limit);
  const CUresult code = invoke(c.driver().cuCtxSetLimit, limit, body.value);
  std::size_t now = 0;  // the driver rounds: the front-end remembers what is in force
  if (code == CUDA_SUCCESS && c.driver().cuCtxGetLimit) c.driver().cuCtxGetLimit(&now, limit);
  marshal::put_body(c.reply, marshal::number_reply{static_cast<std::int64_t>(now)});
  if (code == CUDA_SUCCESS) c.objects().amend(c.header.context, c.as_record());
  return outcome::answer(code);
}

outcome ends::cuCtxSetCacheConfig(call& c, const marshal::number_reply& body) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  return outcome::answer(invoke(c.driver().cuCtxSetCacheConfig, static_cast<CUfunc_cache>(body.value)));
}

outcome ends::cuCtxSynchronize(call& c) {
  if (c.refused != CUDA_SUCCESS) return outcome::answer(c.refused);
  const std::uint64_t mark = c.session.work().mark();
  unseen_output& output = c.session.unseen();
  const std::uint64_t launched = output.mark(c.header.context);
  const CUresult seen = c.session.waits().for_context(c);
  if (seen != CUDA_SUCCESS) c.give_up_turn();
  const bool over = seen == CUDA_SUCCESS && !output.possible();
  const CUresult code = over ? seen : invoke(c.driver().cuCtxSynchronize);
  if (code == CUDA_SUCCESS) {
    c.session.work().done(c.header.context, mark);
    c.own.waited_for = launched;
  }
  return outcome::answer(code);
}

}  // namespace outboard::backend
