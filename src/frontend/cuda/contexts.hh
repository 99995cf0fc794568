// What the context chapters share: making a primary context active, letting one die. Any thread.
#pragma once

#include "frontend/context.hh"
#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

/// The context behind a handle of the program, or nullptr.
context_state* find_context(CUcontext handle);

/// Everything that belongs to the context ends: memory, context-local storage, handles stay dead.
void context_died(context_state& context);

}  // namespace outboard::frontend::cuda
