// The first check of a hand-written end, as the function's line in the tables says: CUDA is initialised, and
// the thread has a context that is usable. The entry makes it (entry.hh). Any thread.
#pragma once

#include "api/cuda/functions.hh"
#include "frontend/cuda/process.hh"

namespace outboard::frontend::cuda {

/// CUDA_SUCCESS, or the driver's refusal: not initialised, no context, a dead or failed one. For ends whose
/// line says `gate end` or `gate init`.
template <api::opcode Op>
CUresult gate(const lane& own) {
  return own.state().connection.gate(api::function<Op>::about, own);
}

/// Runs an end behind that part of the check that the line leaves to the entry. An end that calls another
/// one's without this has made the same check already.
template <api::opcode Op, class End>
CUresult gated(const lane& own, End&& end) {
  constexpr const api::description& about = api::function<Op>::about;
  if constexpr (!about.preinit && about.gate != api::gatekeeper::end) {
    constexpr bool needs_context = !about.noctx && about.gate == api::gatekeeper::entry;
    if (const CUresult refused = own.state().connection.gate(own, needs_context); refused != CUDA_SUCCESS)
      return refused;
  }
  return end();
}

}  // namespace outboard::frontend::cuda
