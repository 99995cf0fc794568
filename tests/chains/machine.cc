#include "machine.hh"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels.hh"

namespace chains {
namespace {

struct failure {
  std::string what;
};

constexpr std::size_t page = 4096;
constexpr unsigned threads_of_a_mix = 64;

/// Blocks of threads that mix so many bytes.
unsigned grid_of(std::uint64_t bytes) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(bytes / 1024, 1, 64));
}

}  // namespace

void counts::add(const operation& o) {
  ++operations[static_cast<std::size_t>(o.what)];
  bytes += o.parts.empty() && o.to.block >= 0 ? bytes_of(o) : 0;
  for (const operation& part : o.parts) add(part);
  for (const operation& b : o.beside) add(b);
}

void machine::must(CUresult code, const char* what) {
  if (code != CUDA_SUCCESS) throw failure{std::string(what) + " gave " + std::to_string(code)};
}
#define MUST(call) must((call), #call)

machine::machine(int devices) {
  try {
    int there = 0;
    MUST(cuInit(0));
    MUST(cuDeviceGetCount(&there));
    if (there < devices) throw failure{"there are fewer devices: " + std::to_string(there)};
    for (int d = 0; d < devices; ++d) open(devices_.emplace_back(), d);
  } catch (const failure& f) {
    std::fprintf(stderr, "%s\n", f.what.c_str());
    std::exit(2);
  }
}

void machine::open(device& d, int number) {
  CUdevice which = 0;
  CUmodule module = nullptr;
  MUST(cuDeviceGet(&which, number));
  MUST(cuDevicePrimaryCtxRetain(&d.context, which));
  MUST(cuCtxSetCurrent(d.context));
  MUST(cuModuleLoadData(&module, kernels));
  MUST(cuModuleGetFunction(&d.mix, module, "mix"));
  MUST(cuModuleGetFunction(&d.spin, module, "spin"));
  MUST(cuMemAlloc(&d.scratch, sizeof(int)));
  for (int s = 0; s < streams_of_a_device; ++s) {
    switch (stream_of(s).kind) {
      case stream_kind::legacy:
        d.streams[s] = CU_STREAM_LEGACY;
        break;
      case stream_kind::per_thread:
        d.streams[s] = CU_STREAM_PER_THREAD;
        break;
      case stream_kind::blocking:
        MUST(cuStreamCreate(&d.streams[s], CU_STREAM_DEFAULT));
        break;
      case stream_kind::non_blocking:
        MUST(cuStreamCreate(&d.streams[s], CU_STREAM_NON_BLOCKING));
    }
  }
  for (CUevent& e : d.events) MUST(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  if (rounds_in_a_microsecond_ > 0) return;
  const auto time = [&](unsigned rounds) {
    void* list[] = {&d.scratch, &rounds};
    const auto begin = std::chrono::steady_clock::now();
    MUST(cuLaunchKernel(d.spin, 1, 1, 1, 1, 1, 1, 0, nullptr, list, nullptr));
    MUST(cuCtxSynchronize());
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
  };
  (void)time(1);
  rounds_in_a_microsecond_ = 100000 / time(100000);
}

CUstream machine::handle(const operation& o) const {
  return devices_[stream_of(o.stream).device].streams[o.stream % streams_of_a_device];
}

void machine::allocate(const chain& c) {
  blocks_ = &c.blocks;
  homes_.assign(c.blocks.size(), {});
  for (std::size_t b = 0; b < c.blocks.size(); ++b) {
    const block& wanted = c.blocks[b];
    home& h = homes_[b];
    MUST(cuCtxSetCurrent(devices_[wanted.device].context));
    void* host = nullptr;
    switch (wanted.kind) {
      case memory::device:
        MUST(cuMemAlloc(&h.address, wanted.size));
        h.on_device = h.address;
        break;
      case memory::pinned:
      case memory::mapped:
        MUST(cuMemHostAlloc(&host, wanted.size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));
        break;
      case memory::registered:
      case memory::pageable:
        h.raw = std::aligned_alloc(page, (wanted.size + wanted.skew + 2 * page - 1) / page * page);
        host = static_cast<std::byte*>(h.raw) + wanted.skew;
        if (wanted.kind == memory::registered)
          MUST(cuMemHostRegister(host, wanted.size,
                                 CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
    }
    std::vector<std::uint8_t> first(wanted.size);
    for (std::uint64_t i = 0; i < wanted.size; ++i) first[i] = number_at(b, i);
    if (host) {
      h.host = static_cast<std::byte*>(host);
      h.address = reinterpret_cast<CUdeviceptr>(host);
      std::memcpy(host, first.data(), first.size());
      if (wanted.kind == memory::mapped) MUST(cuMemHostGetDevicePointer(&h.on_device, host, 0));
    } else {
      MUST(cuMemcpyHtoD(h.address, first.data(), first.size()));
    }
  }
  // Such a copy may return before it is over; another device's streams would not wait for it.
  for (const device& d : devices_) {
    MUST(cuCtxSetCurrent(d.context));
    MUST(cuCtxSynchronize());
  }
}

void machine::release(const chain& c) {
  for (made_graph& g : graphs_) {
    if (g.exec) cuGraphExecDestroy(g.exec);
    if (g.graph) cuGraphDestroy(g.graph);
  }
  graphs_.clear();
  for (std::size_t b = 0; b < homes_.size(); ++b) {
    home& h = homes_[b];
    if (!h.host && h.address) cuMemFree(h.address);
    if (h.host && !h.raw) cuMemFreeHost(h.host);
    if (h.raw && c.blocks[b].kind == memory::registered) cuMemHostUnregister(h.host);
    std::free(h.raw);
  }
  homes_.clear();
  mixes_.clear();
}

void machine::copy(const operation& o) {
  const CUdeviceptr to = at(o.to), from = at(o.from);
  const CUstream s = handle(o);
  auto* const to_host = reinterpret_cast<void*>(to);
  auto* const from_host = reinterpret_cast<const void*>(from);
  if (o.how == form::peer) {
    const CUcontext there = devices_[(*blocks_)[o.to.block].device].context;
    const CUcontext here = devices_[(*blocks_)[o.from.block].device].context;
    if (o.synchronous) return MUST(cuMemcpyPeer(to, there, from, here, o.size));
    return MUST(cuMemcpyPeerAsync(to, there, from, here, o.size, s));
  }
  if (o.how == form::unified) {
    if (o.synchronous) return MUST(cuMemcpy(to, from, o.size));
    return MUST(cuMemcpyAsync(to, from, o.size, s));
  }
  if (o.synchronous) {
    if (host(o.to)) return MUST(cuMemcpyDtoH(to_host, from, o.size));
    if (host(o.from)) return MUST(cuMemcpyHtoD(to, from_host, o.size));
    return MUST(cuMemcpyDtoD(to, from, o.size));
  }
  if (host(o.to)) return MUST(cuMemcpyDtoHAsync(to_host, from, o.size, s));
  if (host(o.from)) return MUST(cuMemcpyHtoDAsync(to, from_host, o.size, s));
  MUST(cuMemcpyDtoDAsync(to, from, o.size, s));
}

CUDA_MEMCPY3D machine::shape(const operation& o) const {
  CUDA_MEMCPY3D p{};
  const bool unified = o.how != form::by_kind;
  const auto type = [&](const place& side) {
    return unified ? CU_MEMORYTYPE_UNIFIED : host(side) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  };
  p.dstMemoryType = type(o.to), p.srcMemoryType = type(o.from);
  p.dstDevice = at(o.to), p.srcDevice = at(o.from);
  p.dstHost = reinterpret_cast<void*>(at(o.to)), p.srcHost = reinterpret_cast<const void*>(at(o.from));
  p.WidthInBytes = o.size, p.Height = o.rows, p.Depth = o.layers;
  const bool is_box = o.what == verb::box;
  p.dstPitch = is_box ? o.to.pitch : o.size, p.srcPitch = is_box ? o.from.pitch : o.size;
  p.dstHeight = p.srcHeight = o.rows;
  return p;
}

void machine::box(const operation& o) {
  const CUDA_MEMCPY3D p = shape(o);
  if (o.how != form::peer) {
    if (o.synchronous) return MUST(cuMemcpy3D(&p));
    return MUST(cuMemcpy3DAsync(&p, handle(o)));
  }
  CUDA_MEMCPY3D_PEER q{};
  q.dstMemoryType = q.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  q.dstDevice = p.dstDevice, q.srcDevice = p.srcDevice;
  q.dstPitch = p.dstPitch, q.srcPitch = p.srcPitch, q.dstHeight = p.dstHeight, q.srcHeight = p.srcHeight;
  q.WidthInBytes = p.WidthInBytes, q.Height = p.Height, q.Depth = p.Depth;
  q.dstContext = devices_[(*blocks_)[o.to.block].device].context;
  q.srcContext = devices_[(*blocks_)[o.from.block].device].context;
  if (o.synchronous) return MUST(cuMemcpy3DPeer(&q));
  MUST(cuMemcpy3DPeerAsync(&q, handle(o)));
}

void machine::fill(const operation& o) { MUST(cuMemsetD8Async(seen(o.to), o.value, o.size, handle(o))); }

unsigned machine::rounds_of(const operation& spin) const {
  return static_cast<unsigned>(std::max(1.0, static_cast<double>(spin.size) * rounds_in_a_microsecond_));
}

void machine::kernel(const operation& o) {
  const device& d = devices_[stream_of(o.stream).device];
  if (o.what == verb::spin) {
    CUdeviceptr nowhere = d.scratch;
    unsigned rounds = rounds_of(o);
    void* list[] = {&nowhere, &rounds};
    return MUST(cuLaunchKernel(d.spin, 1, 1, 1, 1, 1, 1, 0, handle(o), list, nullptr));
  }
  CUdeviceptr to = seen(o.to), from = seen(o.from);
  auto n = static_cast<unsigned>(o.size);
  unsigned value = o.value;
  void* list[] = {&to, &from, &n, &value};
  MUST(cuLaunchKernel(d.mix, grid_of(o.size), 1, 1, threads_of_a_mix, 1, 1, 0, handle(o), list, nullptr));
}

void CUDA_CB machine::run_mix(void* data) {
  const auto& m = *static_cast<const host_mix*>(data);
  for (std::uint64_t i = 0; i < m.size; ++i) m.to[i] = static_cast<std::uint8_t>(m.from[i] * 3 + m.value);
}

machine::host_mix* machine::keep_mix(const operation& o) {
  const auto bytes = [&](const place& p) {
    return reinterpret_cast<std::uint8_t*>(homes_[p.block].host) + p.offset;
  };
  return &mixes_.emplace_back(host_mix{bytes(o.to), bytes(o.from), o.size, o.value});
}

CUmemcpySrcAccessOrder native(order access) {
  return access == order::in_stream     ? CU_MEMCPY_SRC_ACCESS_ORDER_STREAM
         : access == order::during_call ? CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL
                                        : CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/// What the call is given is gone when it returns: nobody may look at it later.
void machine::batch(const operation& o) {
  const std::size_t n = o.parts.size();
  std::vector<CUdeviceptr> to, from;
  std::vector<std::size_t> sizes, indices;
  std::vector<CUmemcpyAttributes> attributes;
  for (std::size_t i = 0; i < n; ++i) {
    to.push_back(at(o.parts[i].to)), from.push_back(at(o.parts[i].from));
    sizes.push_back(o.parts[i].size), indices.push_back(i);
    CUmemcpyAttributes a{};
    a.srcAccessOrder = native(o.parts[i].access);
    attributes.push_back(a);
  }
  MUST(cuMemcpyBatchAsync(to.data(), from.data(), sizes.data(), n, attributes.data(), indices.data(), n,
                          handle(o)));
}

void machine::box_batch(const operation& o) {
  std::vector<CUDA_MEMCPY3D_BATCH_OP> all;
  for (const operation& part : o.parts) {
    CUDA_MEMCPY3D_BATCH_OP b{};
    const auto side = [&](CUmemcpy3DOperand& to, const place& p) {
      to.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
      to.op.ptr.ptr = at(p);
      to.op.ptr.rowLength = p.pitch, to.op.ptr.layerHeight = part.rows;
      to.op.ptr.locHint.type = host(p) ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
      to.op.ptr.locHint.id = host(p) ? 0 : (*blocks_)[p.block].device;
    };
    side(b.dst, part.to), side(b.src, part.from);
    b.extent = {part.size, part.rows, part.layers};
    b.srcAccessOrder = native(part.access);
    all.push_back(b);
  }
  MUST(cuMemcpy3DBatchAsync(all.size(), all.data(), 0, handle(o)));
}

void machine::capture(const operation& o) {
  constexpr CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                           CU_STREAM_CAPTURE_MODE_RELAXED};
  made_graph& g = graphs_.emplace_back();
  MUST(cuStreamBeginCapture(handle(o), modes[o.value % 3]));
  try {
    for (std::size_t i = 0; i < o.parts.size(); ++i) {
      perform(o.parts[i]);
      if (i != 0) continue;
      for (const operation& b : o.beside) perform(b);
    }
  } catch (const failure&) {
    cuStreamEndCapture(handle(o), &g.graph);
    throw;
  }
  MUST(cuCtxSetCurrent(devices_[o.device].context));
  MUST(cuStreamEndCapture(handle(o), &g.graph));
}

CUgraphNode machine::node(CUgraph graph, const operation& o, const std::vector<CUgraphNode>& after) {
  CUgraphNode made = nullptr;
  const device& d = devices_[o.device];
  if (is_copy(o.what)) {
    operation plain = o;
    plain.how = form::unified;
    const CUDA_MEMCPY3D p = shape(plain);
    MUST(cuGraphAddMemcpyNode(&made, graph, after.data(), after.size(), &p, d.context));
  } else if (o.what == verb::fill) {
    const CUDA_MEMSET_NODE_PARAMS p{seen(o.to), 0, o.value, 1, o.size, 1};
    MUST(cuGraphAddMemsetNode(&made, graph, after.data(), after.size(), &p, d.context));
  } else if (o.what == verb::host_function) {
    const CUDA_HOST_NODE_PARAMS p{run_mix, keep_mix(o)};
    MUST(cuGraphAddHostNode(&made, graph, after.data(), after.size(), &p));
  } else {
    const bool spins = o.what == verb::spin;
    CUdeviceptr to = spins ? d.scratch : seen(o.to), from = spins ? 0 : seen(o.from);
    unsigned n = spins ? rounds_of(o) : static_cast<unsigned>(o.size), value = o.value;
    void* mix[] = {&to, &from, &n, &value};
    void* spin[] = {&to, &n};
    CUDA_KERNEL_NODE_PARAMS p{};
    p.func = spins ? d.spin : d.mix;
    p.gridDimX = spins ? 1 : grid_of(o.size);
    p.blockDimX = spins ? 1 : threads_of_a_mix;
    p.gridDimY = p.gridDimZ = p.blockDimY = p.blockDimZ = 1;
    p.kernelParams = spins ? spin : mix;
    MUST(cuGraphAddKernelNode(&made, graph, after.data(), after.size(), &p));
  }
  return made;
}

void machine::build(made_graph& g, const operation& o) {
  MUST(cuGraphCreate(&g.graph, 0));
  for (std::size_t i = 0; i < o.parts.size(); ++i) {
    std::vector<CUgraphNode> after;
    for (const int j : o.after[i]) after.push_back(g.nodes[static_cast<std::size_t>(j)]);
    g.nodes.push_back(node(g.graph, o.parts[i], after));
  }
}

void machine::change(const operation& o) {
  const made_graph& g = graphs_[static_cast<std::size_t>(o.graph)];
  operation plain = o.parts[0];
  plain.how = form::unified;
  const CUDA_MEMCPY3D p = shape(plain);
  MUST(cuGraphExecMemcpyNodeSetParams(g.exec, g.nodes[static_cast<std::size_t>(o.node)], &p,
                                      devices_[o.device].context));
}

/// The graph it is updated from is gone before the next launch.
void machine::update(const operation& o) {
  const made_graph& g = graphs_[static_cast<std::size_t>(o.graph)];
  made_graph other;
  build(other, o);
  CUgraphExecUpdateResultInfo said{};
  const CUresult code = cuGraphExecUpdate(g.exec, other.graph, &said);
  cuGraphDestroy(other.graph);
  MUST(code);
}

void machine::write(const operation& o) {
  std::vector<std::uint8_t> bytes(o.size);
  for (std::uint64_t i = 0; i < o.size; ++i) bytes[i] = number_at(o.value, i);
  std::memcpy(homes_[o.to.block].host + o.to.offset, bytes.data(), bytes.size());
}

void machine::compare(int number, const std::uint8_t* found, std::uint64_t offset,
                      std::span<const std::uint8_t> right) {
  const auto [a, b] = std::mismatch(right.begin(), right.end(), found);
  if (a == right.end()) return;
  const auto at = static_cast<std::size_t>(a - right.begin());
  std::size_t wrong = 0;
  for (std::size_t i = at; i < right.size(); ++i) wrong += right[i] != found[i];
  throw failure{"block " + std::to_string(number) + ": " + std::to_string(wrong) +
                " bytes differ, the first at " + std::to_string(offset + at) + ": " + std::to_string(*b) +
                " for " + std::to_string(*a)};
}

void machine::look(const operation& o, const model& order) {
  compare(o.to.block, reinterpret_cast<const std::uint8_t*>(homes_[o.to.block].host) + o.to.offset,
          o.to.offset, order.bytes(o.to.block).subspan(o.to.offset, o.size));
}

void machine::compare_all(const model& order) {
  for (const device& d : devices_) {
    MUST(cuCtxSetCurrent(d.context));
    MUST(cuCtxSynchronize());
  }
  for (std::size_t b = 0; b < homes_.size(); ++b) {
    const auto right = order.bytes(static_cast<int>(b));
    std::vector<std::uint8_t> copied;
    const auto* found = reinterpret_cast<const std::uint8_t*>(homes_[b].host);
    if (!found) {
      copied.resize(right.size());
      MUST(cuCtxSetCurrent(devices_[(*blocks_)[b].device].context));
      MUST(cuMemcpyDtoH(copied.data(), homes_[b].address, copied.size()));
      found = copied.data();
    }
    compare(static_cast<int>(b), found, 0, right);
  }
}

void machine::perform(const operation& o) {
  MUST(cuCtxSetCurrent(devices_[o.device].context));
  const device& of_stream = devices_[stream_of(o.stream).device];
  switch (o.what) {
    case verb::copy:
      return copy(o);
    case verb::box:
      return box(o);
    case verb::fill:
      return fill(o);
    case verb::kernel:
    case verb::spin:
      return kernel(o);
    case verb::host_function:
      return MUST(cuLaunchHostFunc(handle(o), run_mix, keep_mix(o)));
    case verb::record:
      recorded_on_[o.event] = stream_of(o.stream).device;
      return MUST(cuEventRecord(of_stream.events[o.event], handle(o)));
    case verb::wait:
      return MUST(cuStreamWaitEvent(handle(o), devices_[recorded_on_[o.event]].events[o.event], 0));
    case verb::join_stream:
      return MUST(cuStreamSynchronize(handle(o)));
    case verb::poll_stream: {
      CUresult code = CUDA_SUCCESS;
      while ((code = cuStreamQuery(handle(o))) == CUDA_ERROR_NOT_READY) continue;
      return must(code, "cuStreamQuery(handle(o))");
    }
    case verb::join_context:
      return MUST(cuCtxSynchronize());
    case verb::join_event:
      return MUST(cuEventSynchronize(devices_[recorded_on_[o.event]].events[o.event]));
    case verb::write:
      return write(o);
    case verb::batch:
      return batch(o);
    case verb::box_batch:
      return box_batch(o);
    case verb::graph:
      o.captured ? capture(o) : build(graphs_.emplace_back(), o);
      return MUST(cuGraphInstantiate(&graphs_.back().exec, graphs_.back().graph, 0));
    case verb::launch:
      return MUST(cuGraphLaunch(graphs_[o.graph].exec, handle(o)));
    case verb::change:
      return change(o);
    case verb::update:
      return update(o);
    case verb::drop: {
      made_graph& g = graphs_[o.graph];
      MUST(cuGraphExecDestroy(std::exchange(g.exec, nullptr)));
      return MUST(cuGraphDestroy(std::exchange(g.graph, nullptr)));
    }
    case verb::look:
    case verb::count:
      return;
  }
}

std::optional<std::string> machine::run(const chain& c, counts* all) {
  std::optional<std::string> wrong;
  std::string where = "making its memory";
  try {
    allocate(c);
    model order(c);
    for (std::size_t i = 0; i < c.operations.size(); ++i) {
      const operation& o = c.operations[i];
      where = "operation " + std::to_string(i) + " (" + std::string(names[static_cast<std::size_t>(o.what)]) +
              ")";
      if (all) all->add(o);
      if (!order.step(o)) throw failure{"the model does not take it"};
      if (o.what == verb::look) {
        look(o, order);
      } else {
        perform(o);
      }
    }
    where = "the end";
    compare_all(order);
  } catch (const failure& f) {
    wrong = where + ": " + f.what;
    // What is under way must not reach into the next chain.
    for (const device& d : devices_) {
      cuCtxSetCurrent(d.context);
      cuCtxSynchronize();
    }
  }
  release(c);
  if (all) ++all->chains;
  return wrong;
}

}  // namespace chains
