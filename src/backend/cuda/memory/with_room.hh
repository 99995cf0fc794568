// Allocations that fail for lack of memory are tried again when sessions whose clients are away have given
// way: nobody's allocation fails because another one's client may come back. With the turn.
#pragma once

#include <utility>

#include "backend/cuda/call.hh"
#include "backend/session/session_core.hh"

namespace outboard::backend {

/// `allocate` leaves nothing behind when it fails. Behind the session's own limits: they are no lack of
/// memory.
template <class Allocate>
CUresult with_room(call& c, Allocate&& allocate) {
  CUresult code = allocate();
  while (code == CUDA_ERROR_OUT_OF_MEMORY && c.core().make_room()) code = allocate();
  return code;
}

}  // namespace outboard::backend
