// Entries of the chapter execution that launch. What a driver refuses at the call is refused here: shapes,
// shared memory, parameters; what a kernel does wrong becomes the context's sticky error.
#include <cstring>

#include "base/log.hh"
#include "device/cpu/graph/capture.hh"
#include "device/cpu/launch.hh"
#include "device/cpu/machine.hh"

namespace outboard::device::cpu {
namespace {

CUresult result_of(ptx::outcome kind, bool limited) {
  switch (kind) {
    case ptx::outcome::ok:
      return CUDA_SUCCESS;
    case ptx::outcome::illegal_address:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case ptx::outcome::misaligned_address:
      return CUDA_ERROR_MISALIGNED_ADDRESS;
    case ptx::outcome::trap:
      return CUDA_ERROR_LAUNCH_FAILED;
    case ptx::outcome::assertion:
      return CUDA_ERROR_ASSERT;
    case ptx::outcome::illegal_instruction:
      return CUDA_ERROR_ILLEGAL_INSTRUCTION;
    // A board would hang until its watchdog; here the cause is known.
    case ptx::outcome::deadlock:
      return CUDA_ERROR_LAUNCH_TIMEOUT;
    case ptx::outcome::cancelled:
      return limited ? CUDA_ERROR_LAUNCH_TIMEOUT : CUDA_ERROR_DEINITIALIZED;
    case ptx::outcome::out_of_resources:
      return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    case ptx::outcome::invalid_request:
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_ERROR_UNKNOWN;
}

CUresult check_shape(const callable& what, const launch_shape& how) {
  using limits = ptx::executor_limits;
  std::uint64_t threads = 1, blocks = 1;
  for (std::size_t i = 0; i < 3; ++i) {
    if (how.grid[i] == 0 || how.grid[i] > limits::max_grid[i]) return CUDA_ERROR_INVALID_VALUE;
    if (how.block[i] == 0 || how.block[i] > limits::max_block[i]) return CUDA_ERROR_INVALID_VALUE;
    threads *= how.block[i];
    // Capped: the product of three grid sizes does not fit.
    blocks = std::min<std::uint64_t>(blocks * how.grid[i], std::uint64_t{1} << 31);
  }
  const ptx::kernel_info& info = *what.info;
  if (threads > limits::max_threads || threads > info.max_threads) return CUDA_ERROR_INVALID_VALUE;
  const auto& required = info.required_block;
  if (required[0] != 0 && required != how.block) return CUDA_ERROR_INVALID_VALUE;
  if (how.shared > static_cast<std::uint32_t>(allowed_dynamic_shared(info, *what.settings))) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (how.cooperative) {
    const auto resident =
        here().executor.resident_blocks(info, static_cast<std::uint32_t>(threads), how.shared);
    if (blocks > resident) return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  return CUDA_SUCCESS;
}

/// Parameters as the kernel reads them, from an array of pointers or from the packed buffer of `extra`.
CUresult pack(const ptx::kernel_info& info, void** parameters, void** extra, std::vector<std::byte>& out) {
  if (parameters != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  out.resize(info.parameter_bytes);
  if (info.parameters.empty()) return CUDA_SUCCESS;
  if (parameters != nullptr) {
    for (std::size_t i = 0; i < info.parameters.size(); ++i) {
      if (parameters[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
      std::memcpy(out.data() + info.parameters[i].offset, parameters[i], info.parameters[i].size);
    }
    return CUDA_SUCCESS;
  }
  if (extra == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      size = *static_cast<const std::size_t*>(extra[1]);
    } else {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (buffer == nullptr || size < info.parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
  std::memcpy(out.data(), buffer, info.parameter_bytes);
  return CUDA_SUCCESS;
}

/// The heap of kernels in this context, where this one may use it.
CUresult heap_for(const context_ptr& c, const callable& what, std::shared_ptr<kernel_heap>& out) {
  if (!what.code->code()->source().uses_heap()) return CUDA_SUCCESS;
  const std::lock_guard lock(c->heap_mutex);
  if (c->heap == nullptr) {
    const std::uint64_t size = std::max<std::uint64_t>(c->limits[CU_LIMIT_MALLOC_HEAP_SIZE], 16) / 16 * 16;
    std::uint64_t address = 0;
    const CUresult r = here().store->allocate(size, 0, memory_kind::device, c->id, 0, address);
    if (r != CUDA_SUCCESS) return r;
    c->heap = std::make_shared<kernel_heap>(address, size);
  }
  return out = c->heap, CUDA_SUCCESS;
}

CUresult launch_on(const context_ptr& c, const stream_ptr& s, CUfunction function, const launch_shape& how,
                   void** parameters, void** extra, std::vector<CUlaunchAttribute> attributes = {}) {
  if (s->group() != c->group) return CUDA_ERROR_INVALID_HANDLE;
  kernel_work work;
  if (const CUresult r = prepare_kernel(c, function, how, parameters, extra, work); r != CUDA_SUCCESS) {
    if (s->capturing()) static_cast<void>(capture_forbids(*s));  // a refused launch loses the capture
    return r;
  }
  if (s->capturing()) {
    work.attributes = std::move(attributes);
    return capture_node(*s, CU_GRAPH_NODE_TYPE_KERNEL, std::move(work));
  }
  here().work.submit(s, make_task([work = std::move(work)] { return run_kernel(work); }));
  return CUDA_SUCCESS;
}

template <bool PerThread>
CUresult launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                unsigned shared, CUstream stream, void** parameters, void** extra) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = stream_of(c, stream, PerThread, s); r != CUDA_SUCCESS) return r;
    return launch_on(c, s, f, {{gx, gy, gz}, {bx, by, bz}, shared, false}, parameters, extra);
  });
}

template <bool PerThread>
CUresult launch_cooperative(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared, CUstream stream, void** parameters) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    stream_ptr s;
    if (const CUresult r = stream_of(c, stream, PerThread, s); r != CUDA_SUCCESS) return r;
    return launch_on(c, s, f, {{gx, gy, gz}, {bx, by, bz}, shared, true}, parameters, nullptr);
  });
}

/// Reads the attributes of a launch; `events` get recorded behind the kernel.
CUresult read_attributes(const CUlaunchConfig& config, launch_shape& how, std::vector<CUevent>& events) {
  for (unsigned i = 0; i < config.numAttrs; ++i) {
    const CUlaunchAttribute& a = config.attrs[i];
    switch (a.id) {
      case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        how.cooperative = a.value.cooperative != 0;
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        if (a.value.clusterDim.x * a.value.clusterDim.y * a.value.clusterDim.z != 1) {
          return CUDA_ERROR_INVALID_CLUSTER_SIZE;  // attribute 120 says there are none
        }
        break;
      // An event that may be reached before the kernel ends is also reached when it has ended.
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        events.push_back(a.value.programmaticEvent.event);
        break;
      case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        events.push_back(a.value.launchCompletionEvent.event);
        break;
      // Hints, and the permission to overlap, which nobody has to use.
      case CU_LAUNCH_ATTRIBUTE_IGNORE:
      case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
      case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
      case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
        break;
      case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        if (a.value.clusterSchedulingPolicyPreference > CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING) {
          return CUDA_ERROR_INVALID_VALUE;
        }
        break;
      case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:  // of streams
        return CUDA_ERROR_INVALID_VALUE;
      default:
        return a.id > CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE ? CUDA_ERROR_INVALID_VALUE
                                                                       : CUDA_ERROR_NOT_SUPPORTED;
    }
  }
  return CUDA_SUCCESS;
}

template <bool PerThread>
CUresult launch_ex(const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra) {
  return with_context([&](context&, const context_ptr& c) -> CUresult {
    if (config == nullptr || (config->numAttrs > 0 && config->attrs == nullptr))
      return CUDA_ERROR_INVALID_VALUE;
    stream_ptr s;
    if (const CUresult r = stream_of(c, config->hStream, PerThread, s); r != CUDA_SUCCESS) return r;
    launch_shape how{{config->gridDimX, config->gridDimY, config->gridDimZ},
                     {config->blockDimX, config->blockDimY, config->blockDimZ},
                     config->sharedMemBytes,
                     false};
    std::vector<CUevent> handles;
    if (const CUresult r = read_attributes(*config, how, handles); r != CUDA_SUCCESS) return r;
    std::vector<std::shared_ptr<event_object>> events;
    for (const CUevent handle : handles) {
      events.push_back(here().events.find(reinterpret_cast<std::uint64_t>(handle)));
      if (events.back() == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    }
    if (s->capturing() && !events.empty()) return CUDA_ERROR_NOT_SUPPORTED;
    const std::vector<CUlaunchAttribute> attributes(config->attrs, config->attrs + config->numAttrs);
    if (const CUresult r = launch_on(c, s, f, how, parameters, extra, attributes); r != CUDA_SUCCESS)
      return r;
    for (const auto& e : events) {
      std::lock_guard lock(e->mutex);
      e->point = here().work.record(s);
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult prepare_kernel(const context_ptr& c, CUfunction function, const launch_shape& how, void** parameters,
                        void** extra, kernel_work& out) {
  kernel_work work;
  work.function = function;
  work.owner = c;
  work.how = how;
  if (const CUresult r = resolve(function, c, work.what); r != CUDA_SUCCESS) return r;
  if (const CUresult r = check_shape(work.what, how); r != CUDA_SUCCESS) return r;
  if (const CUresult r = pack(*work.what.info, parameters, extra, work.parameters); r != CUDA_SUCCESS)
    return r;
  work.stack = static_cast<std::uint32_t>(c->limits[CU_LIMIT_STACK_SIZE]);
  if (const CUresult r = heap_for(c, work.what, work.heap); r != CUDA_SUCCESS) return r;
  out = std::move(work);
  return CUDA_SUCCESS;
}

namespace {

void describe(const kernel_work& work, recorded_span& to) {
  to.name = work.what.info->name;
  api::work_record& r = to.what;
  r.context = static_cast<std::uint32_t>(work.owner->id);
  r.grid = work.how.grid;
  r.block = work.how.block;
  r.dynamic_shared = work.how.shared;
}

}  // namespace

CUresult run_kernel(const kernel_work& work) {
  machine& m = here();
  ptx::launch_request request;
  request.module = work.what.code->code();
  request.kernel = work.what.info->name;
  request.grid = work.how.grid;
  request.block = work.how.block;
  request.dynamic_shared = work.how.shared;
  request.parameters = work.parameters;
  request.cooperative = work.how.cooperative;
  request.memory = m.store.get();
  request.textures = &m.textures;
  request.print = m.how.print;
  request.stack_bytes = work.stack;
  request.set_conditional = [&m](std::uint64_t handle, std::uint32_t value) {
    const std::lock_guard lock(m.graphs_mutex);
    const auto found = m.conditionals.find(handle);
    if (const auto alive = found == m.conditionals.end() ? nullptr : found->second.lock())
      alive->value.store(value, std::memory_order_release);
  };
  request.heap = work.heap.get();
  const memory::flight flight(*m.store);
  const watchdog::watch watch(m.kernels);
  recorded_span span(m.recorder);
  if (span.on()) describe(work, span);
  const ptx::launch_result done = m.executor.run(request, watch.token());
  if (done.ok()) return CUDA_SUCCESS;
  if (done.kind == ptx::outcome::assertion) {
    // As the driver does, and once: the program's own stderr has it.
    m.how.print_error(done.text + "\n");
    log::info("cpu device: ", done.text);
  } else {
    m.how.tell("cpu device: " + done.text);
  }
  return result_of(done.kind, m.how.kernel_timeout.count() > 0);
}

void fill_launch_entries(api::driver_table& t) {
  t.cuLaunchKernel = launch<false>;
  t.cuLaunchKernel_ptsz = launch<true>;
  t.cuLaunchKernelEx = launch_ex<false>;
  t.cuLaunchKernelEx_ptsz = launch_ex<true>;
  t.cuLaunchCooperativeKernel = launch_cooperative<false>;
  t.cuLaunchCooperativeKernel_ptsz = launch_cooperative<true>;
}

}  // namespace outboard::device::cpu
