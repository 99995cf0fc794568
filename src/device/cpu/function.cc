// Kernels and functions: their handles and attributes.
#include "device/cpu/code.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {

CUresult resolve(CUfunction handle, const context_ptr& c, callable& out) {
  const auto value = reinterpret_cast<std::uint64_t>(handle);
  if (type_of(value) == handle_type::function) {
    const auto function = here().functions.find(value);
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (function->owner != c) return CUDA_ERROR_INVALID_HANDLE;
    out = {function->code, function->info, function->settings};
    return CUDA_SUCCESS;
  }
  const auto kernel = here().kernel_handles.find(value);
  if (kernel == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  instance_ptr code;
  if (const CUresult r = kernel->library->in_context(c, code); r != CUDA_SUCCESS) return r;
  out = {std::move(code), kernel->info, kernel->settings};
  return CUDA_SUCCESS;
}

CUresult describe(std::uint64_t handle, const ptx::kernel_info*& info,
                  std::shared_ptr<function_settings>& settings, std::shared_ptr<const void>& keep) {
  if (const auto function = here().functions.find(handle)) {
    info = function->info;
    settings = function->settings;
    keep = function;
    return CUDA_SUCCESS;
  }
  if (const auto kernel = here().kernel_handles.find(handle)) {
    info = kernel->info;
    settings = kernel->settings;
    keep = kernel;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_HANDLE;
}

int allowed_dynamic_shared(const ptx::kernel_info& info, const function_settings& settings) {
  const int set = settings.max_dynamic_shared.load(std::memory_order_relaxed);
  if (set >= 0) return set;
  return std::max(0, profile::shared_per_block - static_cast<int>(info.static_shared_bytes));
}

CUresult function_attribute(CUfunction_attribute id, const ptx::kernel_info& info,
                            const function_settings& settings, int& out) {
  switch (id) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      out = static_cast<int>(info.max_threads);
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      out = static_cast<int>(info.static_shared_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      out = static_cast<int>(info.constant_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      out = static_cast<int>(info.local_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      out = static_cast<int>(info.registers);
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      out = info.target;
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      out = here().facts.capability;
      break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      out = 0;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      out = allowed_dynamic_shared(info, settings);
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      out = settings.carveout.load();
      break;
    case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT:
    case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH:
    case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
    case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
      out = 0;
      break;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult set_function_attribute(CUfunction_attribute id, const ptx::kernel_info& info,
                                function_settings& settings, int value) {
  if (id == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) {
    const int most = here().facts.shared_per_block_optin - static_cast<int>(info.static_shared_bytes);
    if (value < 0 || value > most) return CUDA_ERROR_INVALID_VALUE;
    settings.max_dynamic_shared = value;
    return CUDA_SUCCESS;
  }
  if (id == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) {
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    settings.carveout = value;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

namespace {

/// Calls answer(info, settings) for a function or kernel handle. These queries need no context.
template <class Handle, class Answer>
CUresult about(Handle handle, Answer&& answer) {
  return after_init([&]() -> CUresult {
    const ptx::kernel_info* info = nullptr;
    std::shared_ptr<function_settings> settings;
    std::shared_ptr<const void> keep;
    if (const CUresult r = describe(reinterpret_cast<std::uint64_t>(handle), info, settings, keep);
        r != CUDA_SUCCESS) {
      return r;
    }
    return answer(*info, *settings);
  });
}

template <class Handle>
CUresult parameter(Handle handle, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (offset == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(handle, [&](const ptx::kernel_info& info, const function_settings&) -> CUresult {
    if (index >= info.parameters.size()) return CUDA_ERROR_INVALID_VALUE;
    *offset = info.parameters[index].offset;
    if (size != nullptr) *size = info.parameters[index].size;
    return CUDA_SUCCESS;
  });
}

template <class Handle>
CUresult name_of(const char** name, Handle handle) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(handle, [&](const ptx::kernel_info& info, const function_settings&) -> CUresult {
    return *name = info.name.c_str(), CUDA_SUCCESS;
  });
}

CUresult func_get_attribute(int* value, CUfunction_attribute id, CUfunction function) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(function, [&](const ptx::kernel_info& info, const function_settings& settings) {
    return function_attribute(id, info, settings, *value);
  });
}

CUresult func_set_attribute(CUfunction function, CUfunction_attribute id, int value) {
  return about(function, [&](const ptx::kernel_info& info, function_settings& settings) {
    return set_function_attribute(id, info, settings, value);
  });
}

CUresult kernel_get_attribute(int* value, CUfunction_attribute id, CUkernel kernel, CUdevice device) {
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return about(kernel, [&](const ptx::kernel_info& info, const function_settings& settings) {
    return function_attribute(id, info, settings, *value);
  });
}

CUresult kernel_set_attribute(CUfunction_attribute id, int value, CUkernel kernel, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  return about(kernel, [&](const ptx::kernel_info& info, function_settings& settings) {
    return set_function_attribute(id, info, settings, value);
  });
}

// A cache split is a hint without effect here.
template <class Handle>
CUresult accept(Handle handle) {
  return about(handle, [](const ptx::kernel_info&, const function_settings&) { return CUDA_SUCCESS; });
}
CUresult func_set_cache_config(CUfunction function, CUfunc_cache) { return accept(function); }
CUresult func_set_shared_config(CUfunction function, CUsharedconfig) { return accept(function); }
CUresult kernel_set_cache_config(CUkernel kernel, CUfunc_cache, CUdevice device) {
  return device == 0 ? accept(kernel) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult func_get_module(CUmodule* module, CUfunction handle) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return after_init([&]() -> CUresult {
    const auto function = here().functions.find(reinterpret_cast<std::uint64_t>(handle));
    if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    return *module = reinterpret_cast<CUmodule>(function->module), CUDA_SUCCESS;
  });
}

CUresult func_is_loaded(CUfunctionLoadingState* state, CUfunction function) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult known = accept(function);
  if (known == CUDA_SUCCESS) *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return known;
}

CUresult func_load(CUfunction function) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    callable found;
    return resolve(function, c, found);
  });
}

/// Resident blocks of one multiprocessor: as many as a board of this capability holds, but no more than the
/// executor can have resident at once, so that occupancy x multiprocessors is always a legal cooperative
/// grid.
int resident_blocks(const ptx::kernel_info& info, int threads, std::size_t dynamic_shared) {
  const profile& p = here().facts;
  const int warps = (threads + 31) / 32;
  int blocks = std::min(p.blocks_per_multiprocessor, p.threads_per_multiprocessor / (warps * 32));
  const int registers = static_cast<int>(std::max(1u, info.registers)) * warps * 32;
  blocks = std::min(blocks, profile::registers_per_multiprocessor / registers);
  const std::uint64_t shared = info.static_shared_bytes + dynamic_shared;
  if (shared > static_cast<std::uint64_t>(p.shared_per_block_optin)) return 0;
  const std::uint64_t taken = shared + static_cast<std::uint64_t>(p.reserved_shared_per_block);
  if (taken > 0)
    blocks = static_cast<int>(std::min<std::uint64_t>(blocks, p.shared_per_multiprocessor / taken));
  const std::uint32_t all = here().executor.resident_blocks(info, static_cast<std::uint32_t>(threads),
                                                            static_cast<std::uint32_t>(dynamic_shared));
  return std::min<int>(blocks, static_cast<int>(std::min<std::uint32_t>(all / p.cores, 1u << 20)));
}

CUresult occupancy(int* blocks, CUfunction function, int threads, std::size_t dynamic_shared) {
  if (blocks == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  return about(function, [&](const ptx::kernel_info& info, const function_settings&) {
    const bool fits = static_cast<unsigned>(threads) <= info.max_threads;
    *blocks = fits ? resident_blocks(info, threads, dynamic_shared) : 0;
    return CUDA_SUCCESS;
  });
}

CUresult occupancy_with_flags(int* blocks, CUfunction function, int threads, std::size_t dynamic_shared,
                              unsigned flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return occupancy(blocks, function, threads, dynamic_shared);
}

CUresult best_block(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                    std::size_t shared, int limit) {
  if (grid == nullptr || block == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return about(function, [&](const ptx::kernel_info& info, const function_settings&) {
    int most = static_cast<int>(info.max_threads), best = 0, best_blocks = 0;
    if (limit > 0) most = std::min(most, limit);
    for (int threads = std::max(1, most / 32 * 32); threads > 0; threads -= 32) {
      const std::size_t bytes = shared_of != nullptr ? shared_of(threads) : shared;
      const int blocks = resident_blocks(info, threads, bytes);
      if (blocks * threads > best_blocks * best) best = threads, best_blocks = blocks;
    }
    *block = best;
    *grid = best_blocks * static_cast<int>(here().facts.cores);
    return CUDA_SUCCESS;
  });
}

CUresult best_block_with_flags(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                               std::size_t shared, int limit, unsigned flags) {
  if (flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE) return CUDA_ERROR_INVALID_VALUE;
  return best_block(grid, block, function, shared_of, shared, limit);
}

/// Attribute 120 says that there are no clusters, so each block counts as a cluster.
CUresult cluster_blocks(CUfunction function, const CUlaunchConfig* config, int& blocks) {
  if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr))
    return CUDA_ERROR_INVALID_VALUE;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const CUlaunchAttribute& a = config->attrs[i];
    const auto& size = a.value.clusterDim;
    if (a.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && (size.x != 1 || size.y != 1 || size.z != 1))
      return CUDA_ERROR_INVALID_CLUSTER_SIZE;
  }
  const std::uint64_t threads = std::uint64_t{config->blockDimX} * config->blockDimY * config->blockDimZ;
  if (threads == 0 || threads > ptx::executor_limits::max_threads) return CUDA_ERROR_INVALID_VALUE;
  return occupancy(&blocks, function, static_cast<int>(threads), config->sharedMemBytes);
}

CUresult active_clusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  if (clusters == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int blocks = 0;
  const CUresult r = cluster_blocks(function, config, blocks);
  if (r == CUDA_SUCCESS) *clusters = blocks * static_cast<int>(here().facts.cores);
  return r;
}

CUresult potential_cluster(int* size, CUfunction function, const CUlaunchConfig* config) {
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  int blocks = 0;
  const CUresult r = cluster_blocks(function, config, blocks);
  if (r == CUDA_SUCCESS) *size = 1;
  return r;
}

CUresult available_shared(std::size_t* bytes, CUfunction function, int blocks, int threads) {
  if (bytes == nullptr || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  return about(function, [&](const ptx::kernel_info& info, const function_settings&) -> CUresult {
    const profile& p = here().facts;
    if (resident_blocks(info, threads, 0) < blocks) return CUDA_ERROR_INVALID_VALUE;
    const int share = std::min(p.shared_per_multiprocessor / blocks - p.reserved_shared_per_block,
                               p.shared_per_block_optin);
    *bytes = static_cast<std::size_t>(std::max(0, share - static_cast<int>(info.static_shared_bytes)));
    return CUDA_SUCCESS;
  });
}

}  // namespace

void fill_function_entries(api::driver_table& t) {
  t.cuFuncGetAttribute = func_get_attribute;
  t.cuFuncSetAttribute = func_set_attribute;
  t.cuFuncSetCacheConfig = func_set_cache_config;
  t.cuFuncSetSharedMemConfig = func_set_shared_config;
  t.cuFuncGetModule = func_get_module;
  t.cuFuncGetName = name_of<CUfunction>;
  t.cuFuncGetParamInfo = parameter<CUfunction>;
  t.cuFuncIsLoaded = func_is_loaded;
  t.cuFuncLoad = func_load;
  t.cuKernelGetAttribute = kernel_get_attribute;
  t.cuKernelSetAttribute = kernel_set_attribute;
  t.cuKernelSetCacheConfig = kernel_set_cache_config;
  t.cuKernelGetName = name_of<CUkernel>;
  t.cuKernelGetParamInfo = parameter<CUkernel>;
  t.cuOccupancyMaxActiveBlocksPerMultiprocessor = occupancy;
  t.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags = occupancy_with_flags;
  t.cuOccupancyMaxPotentialBlockSize = best_block;
  t.cuOccupancyMaxPotentialBlockSizeWithFlags = best_block_with_flags;
  t.cuOccupancyAvailableDynamicSMemPerBlock = available_shared;
  t.cuOccupancyMaxActiveClusters = active_clusters;
  t.cuOccupancyMaxPotentialClusterSize = potential_cluster;
}

}  // namespace outboard::device::cpu
