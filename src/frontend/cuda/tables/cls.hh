// Context-local storage: what each copy of the CUDA runtime in the process keeps per context, and looks up
// about once per runtime call. Process-wide, because the C ABI has no object to attach it to; any thread.
// cls_get takes no lock, calls no allocator and makes no system call. `context` here is a real handle: the
// callers in export_tables.cc resolve "current".
#pragma once

#include <cstddef>

#include "api/cuda/headers.hh"

namespace outboard::frontend::cuda {

using cls_destructor = void (*)(CUcontext context, void* key, void* value);

/// An entry that exists is replaced, its old value not destroyed.
CUresult cls_put(CUcontext context, void* key, void* value, cls_destructor destructor);

/// CUDA_ERROR_INVALID_HANDLE and `value` untouched when there is no such entry.
CUresult cls_get(void** value, CUcontext context, void* key);

/// Removes the entry without calling its destructor (the libraries free their values themselves).
CUresult cls_delete(CUcontext context, void* key);

/// For cuDevicePrimaryCtxReset, cuCtxDestroy and the last cuDevicePrimaryCtxRelease: drops every entry of the
/// context, then calls the destructors, with no lock held (they may call back into the driver). How many
/// there were. A runtime learns of a reset only by cls_get failing, so call this before the reset returns.
std::size_t cls_context_died(CUcontext context);

/// In a forked child, which has one thread and no CUDA: forgets everything, calls nothing.
void cls_forked();

}  // namespace outboard::frontend::cuda
