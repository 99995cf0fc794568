// What the context chapters share: making a primary context active, letting one die. Any thread.
#pragma once

#include "base/fd.hh"
#include "frontend/context.hh"
#include "frontend/cuda/requests.hh"
#include "frontend/freed_names.hh"

namespace outboard::frontend::cuda {

/// The context behind a handle of the program, or nullptr.
context_state* find_context(CUcontext handle);

/// Everything that belongs to the context ends: memory, context-local storage, code, whose handles are
/// `freed`.
void context_died(context_state& context, freed_names& freed);
/// Sends the request that ends it. Waits where copies to the host may still be under way beside the session's
/// connection: they are over then.
CUresult tell_of_death(request& r, const context_state& context);

/// A primary context begins a new life: what it had in the last one is dead, though its handle is the same.
void forget_last_life(lane& own, const context_state& context);
/// Page-locked memory of that life.
void forget_page_locked(lane& own, std::uint64_t context);

/// What is remembered of a stream of a green context.
namespace detail {
std::unique_ptr<object> stream_in(std::uint64_t green, unsigned flags, int priority);
}

/// What the address of page-locked memory (a host block) is to the device; it becomes visible to kernels, or
/// (`to_kernels` false) only has its place on the server.
CUresult device_pointer_of(lane& own, const memory_block& block, std::uint64_t address, std::uint64_t& out,
                           bool to_kernels = true);

/// Page-locked memory of our own that the server shares, in the current context; and the end of it, which
/// waits for the device. `file`: takes the file that both sides have mapped, the memory's from offset 0 on,
/// if it is more than a small block.
CUresult allocate_shared(lane& own, std::uint64_t size, std::uint64_t& address, unique_fd* file = nullptr);
void release_shared(lane& own, std::uint64_t address, std::uint64_t size);

/// A reset of its context takes away what the server shared.
bool is_shared_still(const lane& own, std::uint64_t address);
/// Whether copies of the program may pass through such memory now: not during a capture, nor if changes of
/// host memory are looked for at each request.
bool may_pass_shared();

/// Frees what cuExternalMemoryGetMappedBuffer gave out; false: this is none of it.
bool free_external_mapping(CUdeviceptr pointer);

/// Managed memory that the server already has (a module's variable) is opened here too.
CUresult open_managed(lane& own, std::uint64_t address, std::uint64_t size);
CUresult free_managed(lane& own, const memory_block& block);
void forget_managed(const memory_block& block);  ///< its context has died

/// Tells the server of released memory whose last descriptor the program has closed since.
void sweep_shared(lane& own);

}  // namespace outboard::frontend::cuda
