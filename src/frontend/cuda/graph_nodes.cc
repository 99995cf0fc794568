#include "frontend/cuda/graph_nodes.hh"

#include <atomic>
#include <cstring>

#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/code/launch_parameters.hh"
#include "frontend/cuda/copying/copies.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr unsigned most_operations = 256;
/// Stands where the program's function would: its address is all that it has.
char host_copy_mark;

/// Graphs and nodes that the program has destroyed: what was known of their nodes may be so no more.
std::atomic<std::uint64_t> destroyed{0};

constexpr std::size_t copy_side = 10, copy_numbers = 2 * copy_side + 3;

/// What the program was given pointers to: valid until the node goes or is asked again.
struct told_parameters {
  std::uint64_t graph = 0;
  std::vector<std::uint8_t> bytes;
  std::vector<void*> pointers;
};

struct told_table {
  std::mutex mutex;
  std::map<std::uint64_t, told_parameters> by_node;
};

told_table& told() {
  static told_table* const the_one = new told_table;  // never destroyed: see process::instance()
  return *the_one;
}

told_parameters& keep(told_table& all, CUgraphNode node, std::uint64_t graph,
                      const std::vector<std::uint8_t>& bytes) {
  told_parameters& kept = all.by_node[value_of(node)];
  kept.graph = graph;
  kept.bytes = bytes;
  kept.pointers.clear();
  return kept;
}

bool context_ok(CUcontext context) {
  return !context || process::instance().objects().find_context(value_of(context));
}

/// One end of a copy as the program gives it; what the server has too is a device's, whatever the program
/// calls it: it is copied there, and here it may be closed while the graph runs.
struct side {
  std::size_t x, y, z, lod;
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  std::size_t pitch, height;
};

bool on_host(const side& s) {
  if (s.type == CU_MEMORYTYPE_HOST) return true;
  if (s.type != CU_MEMORYTYPE_UNIFIED) return false;
  const auto block = process::instance().memory().addresses().find(s.device);
  return !block || is_host(block->kind);
}

side as_it_lies(side s) {
  const auto place = reinterpret_cast<CUdeviceptr>(s.host);
  if (s.type == CU_MEMORYTYPE_HOST && on_device(place)) s.type = CU_MEMORYTYPE_DEVICE, s.device = place;
  return s;
}

side from_of(const CUDA_MEMCPY3D& p) {
  return as_it_lies({p.srcXInBytes, p.srcY, p.srcZ, p.srcLOD, p.srcMemoryType, p.srcHost, p.srcDevice,
                     p.srcArray, p.srcPitch, p.srcHeight});
}
side to_of(const CUDA_MEMCPY3D& p) {
  return as_it_lies({p.dstXInBytes, p.dstY, p.dstZ, p.dstLOD, p.dstMemoryType, p.dstHost, p.dstDevice,
                     p.dstArray, p.dstPitch, p.dstHeight});
}

/// The program's memory on this side of a copy; false: it makes no sense.
bool box_of(const side& s, const CUDA_MEMCPY3D& p, host_box& box) {
  const void* from = s.type == CU_MEMORYTYPE_HOST ? s.host : reinterpret_cast<const void*>(s.device);
  box.width = p.WidthInBytes, box.height = p.Height, box.depth = p.Depth;
  box.pitch = s.pitch ? s.pitch : p.WidthInBytes;
  box.slice = box.pitch * (s.height ? s.height : p.Height);
  box.base = static_cast<std::byte*>(const_cast<void*>(from)) + s.z * box.slice + s.y * box.pitch + s.x;
  return from && (p.Height <= 1 || box.pitch >= p.WidthInBytes);
}

CUresult put_side(const side& s, const CUDA_MEMCPY3D& p, node_parameters& out,
                  std::vector<std::uint64_t>& made) {
  std::vector<std::uint64_t>& n = out.numbers;
  if (!on_host(s)) {
    const auto type = s.type == CU_MEMORYTYPE_UNIFIED ? CU_MEMORYTYPE_DEVICE : s.type;
    const bool array = type == CU_MEMORYTYPE_ARRAY;
    if (array ? !find_object<object>(s.array) : s.device == 0) return CUDA_ERROR_INVALID_VALUE;
    if (!array) reach(this_lane(), s.device);
    n.insert(n.end(), {s.x, s.y, s.z, s.lod, static_cast<std::uint64_t>(type), 0, array ? 0 : s.device,
                       array ? value_of(s.array) : 0, s.pitch, s.height});
    return CUDA_SUCCESS;
  }
  host_box box;
  if (!box_of(s, p, box)) return CUDA_ERROR_INVALID_VALUE;
  const bool one_row = box.height == 1 && box.depth == 1;
  const std::uint64_t pitch = one_row ? box.width : box.pitch, rows = box.slice / box.pitch;
  const std::uint64_t bytes = (box.depth - 1) * box.slice + (box.height - 1) * pitch + box.width;
  const server_place there =
      make_place_on_server(this_lane(), reinterpret_cast<std::uint64_t>(box.base), bytes);
  if (there.code != CUDA_SUCCESS) return there.code;
  if (there.address) {
    n.insert(n.end(), {0, 0, 0, 0, CU_MEMORYTYPE_DEVICE, 0, there.address, 0, pitch, rows});
    return CUDA_SUCCESS;
  }
  process& all = process::instance();
  made.push_back(all.functions().add(*all.server(), box));
  n.insert(n.end(), {0, 0, 0, 0, CU_MEMORYTYPE_HOST, made.back(), 0, 0, p.WidthInBytes, p.Height});
  return CUDA_SUCCESS;
}

}  // namespace

void forget_told(std::uint64_t graph, std::uint64_t node) {
  destroyed.fetch_add(1, std::memory_order_relaxed);
  told_table& all = told();
  const std::lock_guard lock(all.mutex);
  all.by_node.erase(node);
  if (graph) std::erase_if(all.by_node, [&](const auto& entry) { return entry.second.graph == graph; });
}

kernel_node_shape shape_of(const lane& own, const node_parameters& kernel) {
  const kernel_object* known = find_kernel(reinterpret_cast<CUfunction>(kernel.subject));
  return {kernel.subject,
          kernel.context,
          own.context_handle(),
          kernel.grid,
          kernel.block,
          kernel.shared,
          known ? known->dynamic_shared_limit.load(std::memory_order_relaxed) : 0,
          kernel.bytes.size(),
          destroyed.load(std::memory_order_relaxed)};
}

CUresult put_kernel(lane& own, const CUDA_KERNEL_NODE_PARAMS_v2& p, node_parameters& out) {
  const CUfunction function = p.func ? p.func : reinterpret_cast<CUfunction>(p.kern);
  kernel_object* kernel = find_kernel(function);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (!context_ok(p.ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  if (p.kernelParams && p.extra) return CUDA_ERROR_INVALID_VALUE;
  out.type = CU_GRAPH_NODE_TYPE_KERNEL;
  out.context = value_of(p.ctx);
  out.subject = value_of(function);
  out.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  out.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  out.shared = p.sharedMemBytes;
  if (p.extra) {
    const auto packed = packed_buffer(p.extra);
    if (!packed || packed->size() > marshal::max_parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto* first = reinterpret_cast<const std::uint8_t*>(packed->data());
    out.bytes.assign(first, first + packed->size());
    return CUDA_SUCCESS;
  }
  if (const CUresult code = know_layout(own, *kernel, value_of(function)); code != CUDA_SUCCESS) return code;
  if (!p.kernelParams && !kernel->parameters.empty()) return CUDA_ERROR_INVALID_VALUE;
  out.bytes.assign(kernel->parameter_bytes, 0);
  for (std::size_t i = 0; i < kernel->parameters.size(); ++i) {
    const auto& parameter = kernel->parameters[i];
    if (!p.kernelParams[i]) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(out.bytes.data() + parameter.offset, p.kernelParams[i], parameter.size);
  }
  return CUDA_SUCCESS;
}

bool take_kernel(CUgraphNode node, std::uint64_t graph, const node_parameters& from,
                 CUDA_KERNEL_NODE_PARAMS_v2& p) {
  kernel_object* kernel = find_kernel(reinterpret_cast<CUfunction>(from.subject));
  if (!kernel) return false;
  // Of a node from a packed buffer nobody has asked yet. Where nobody can tell, the program gets no list.
  const bool known = know_layout(this_lane(), *kernel, from.subject) == CUDA_SUCCESS;
  if (known && from.bytes.size() < kernel->parameter_bytes) return false;
  p = {};
  // Both names, where there are two: runtimes know their kernels by the one or the other.
  if (wire::handle{from.subject}.kind() == static_cast<std::uint8_t>(api::handle_kind::kernel)) {
    p.kern = reinterpret_cast<CUkernel>(from.subject);
    if (function_of_kernel(this_lane(), p.kern, p.func) != CUDA_SUCCESS) p.func = nullptr;
  } else {
    p.func = reinterpret_cast<CUfunction>(from.subject);
    p.kern = reinterpret_cast<CUkernel>(kernel->kernel);
  }
  p.ctx = reinterpret_cast<CUcontext>(from.context);
  p.gridDimX = from.grid[0], p.gridDimY = from.grid[1], p.gridDimZ = from.grid[2];
  p.blockDimX = from.block[0], p.blockDimY = from.block[1], p.blockDimZ = from.block[2];
  p.sharedMemBytes = from.shared;
  told_table& all = told();
  const std::lock_guard lock(all.mutex);
  told_parameters& kept = keep(all, node, graph, from.bytes);
  if (known) {
    for (const auto& parameter : kernel->parameters)
      kept.pointers.push_back(kept.bytes.data() + parameter.offset);
  }
  kept.pointers.push_back(nullptr);
  p.kernelParams = kept.pointers.data();
  return true;
}

CUresult put_copy(const CUDA_MEMCPY3D& p, CUcontext context, node_parameters& out,
                  std::vector<std::uint64_t>& made) {
  if (!context_ok(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (p.WidthInBytes == 0 || p.Height == 0 || p.Depth == 0) return CUDA_ERROR_INVALID_VALUE;
  if (copies_on_host(p)) return put_host_copy(p, out, made);
  out.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  out.context = value_of(context);
  if (const CUresult code = put_side(from_of(p), p, out, made); code != CUDA_SUCCESS) return code;
  if (const CUresult code = put_side(to_of(p), p, out, made); code != CUDA_SUCCESS) return code;
  out.numbers.insert(out.numbers.end(), {p.WidthInBytes, p.Height, p.Depth});
  return CUDA_SUCCESS;
}

bool copies_on_host(const CUDA_MEMCPY3D& p) { return on_host(from_of(p)) && on_host(to_of(p)); }

std::uint64_t add_host_copy(const CUDA_MEMCPY3D& p) {
  host_box from, to;
  if (!box_of(from_of(p), p, from) || !box_of(to_of(p), p, to)) return 0;
  process& all = process::instance();
  const auto kept = std::make_shared<CUDA_MEMCPY3D>(p);
  const auto run = [kept, from, to](std::int32_t) {
    for (std::uint64_t z = 0; z < to.depth; ++z) {
      for (std::uint64_t y = 0; y < to.height; ++y) {
        std::memmove(to.base + z * to.slice + y * to.pitch, from.base + z * from.slice + y * from.pitch,
                     to.width);
      }
    }
  };
  return all.functions().add(*all.server(), run, {&host_copy_mark, kept.get()});
}

CUresult put_host_copy(const CUDA_MEMCPY3D& p, node_parameters& out, std::vector<std::uint64_t>& made) {
  out.type = CU_GRAPH_NODE_TYPE_HOST;
  out.subject = add_host_copy(p);
  if (!out.subject) return CUDA_ERROR_INVALID_VALUE;
  made.push_back(out.subject);
  return CUDA_SUCCESS;
}

const CUDA_MEMCPY3D* host_copy_of(std::uint64_t function) {
  const auto [mark, copy] = process::instance().functions().pointers(function);
  return mark == &host_copy_mark ? static_cast<const CUDA_MEMCPY3D*>(copy) : nullptr;
}

/// Page-locked memory is a device's to the server.
template <class Pointer>
void name_host(CUmemorytype& type, CUdeviceptr& device, Pointer& host) {
  if (type != CU_MEMORYTYPE_DEVICE) return;
  const auto block = process::instance().memory().addresses().find(device);
  if (!block || !names_host(block->kind)) return;
  const bool alias = block->kind == memory_kind::alias;
  type = CU_MEMORYTYPE_HOST;
  host = reinterpret_cast<Pointer>(alias ? block->host + (device - block->base) : device);
  device = 0;
}

bool take_copy(const node_parameters& from, CUDA_MEMCPY3D& p) {
  if (from.numbers.size() != copy_numbers) return false;
  const std::uint64_t* n = from.numbers.data();
  const auto host = [](std::uint64_t id) { return process::instance().functions().box(id); };
  p = {};
  p.srcMemoryType = static_cast<CUmemorytype>(n[4]),
  p.dstMemoryType = static_cast<CUmemorytype>(n[copy_side + 4]);
  p.srcXInBytes = n[0], p.srcY = n[1], p.srcZ = n[2], p.srcLOD = n[3], p.srcDevice = n[6];
  p.srcArray = reinterpret_cast<CUarray>(n[7]), p.srcPitch = n[8], p.srcHeight = n[9];
  if (const auto box = host(n[5]))
    p.srcHost = box->base, p.srcPitch = box->pitch, p.srcHeight = box->slice / box->pitch;
  n += copy_side;
  p.dstXInBytes = n[0], p.dstY = n[1], p.dstZ = n[2], p.dstLOD = n[3], p.dstDevice = n[6];
  p.dstArray = reinterpret_cast<CUarray>(n[7]), p.dstPitch = n[8], p.dstHeight = n[9];
  if (const auto box = host(n[5]))
    p.dstHost = box->base, p.dstPitch = box->pitch, p.dstHeight = box->slice / box->pitch;
  n += copy_side;
  p.WidthInBytes = n[0], p.Height = n[1], p.Depth = n[2];
  name_host(p.srcMemoryType, p.srcDevice, p.srcHost);
  name_host(p.dstMemoryType, p.dstDevice, p.dstHost);
  return true;
}

CUresult put_fill(const CUDA_MEMSET_NODE_PARAMS_v2& p, node_parameters& out) {
  if (!context_ok(p.ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  out.type = CU_GRAPH_NODE_TYPE_MEMSET;
  out.context = value_of(p.ctx);
  out.numbers = {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
  return CUDA_SUCCESS;
}

bool take_fill(const node_parameters& from, CUDA_MEMSET_NODE_PARAMS_v2& p) {
  if (from.numbers.size() != 6) return false;
  const std::uint64_t* n = from.numbers.data();
  p = {n[0],
       n[1],
       static_cast<unsigned>(n[2]),
       static_cast<unsigned>(n[3]),
       n[4],
       n[5],
       reinterpret_cast<CUcontext>(from.context)};
  return true;
}

CUresult put_host(CUhostFn function, void* data, node_parameters& out, std::vector<std::uint64_t>& made) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  process& all = process::instance();
  out.type = CU_GRAPH_NODE_TYPE_HOST;
  out.subject = all.functions().add(*all.server(), [function, data](std::int32_t) { function(data); },
                                    {reinterpret_cast<void*>(function), data});
  made.push_back(out.subject);
  return CUDA_SUCCESS;
}

bool take_host(const node_parameters& from, CUDA_HOST_NODE_PARAMS_v1& p) {
  const auto [function, data] = process::instance().functions().pointers(from.subject);
  if (!function || function == &host_copy_mark) return false;
  p = {reinterpret_cast<CUhostFn>(function), data};
  return true;
}

CUresult put_event(CUgraphNodeType type, CUevent event, node_parameters& out) {
  if (!find_object<object>(event)) return CUDA_ERROR_INVALID_VALUE;
  out.type = type;
  out.subject = value_of(event);
  return CUDA_SUCCESS;
}

CUresult put_child(CUgraph graph, node_parameters& out) {
  if (!graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  out.type = CU_GRAPH_NODE_TYPE_GRAPH;
  out.subject = value_of(graph);
  return CUDA_SUCCESS;
}

CUresult put_allocation(const CUDA_MEM_ALLOC_NODE_PARAMS_v2& p, node_parameters& out) {
  process::instance().memory().use_graph_memory();
  if (p.accessDescCount > 64 || (p.accessDescCount && !p.accessDescs)) return CUDA_ERROR_INVALID_VALUE;
  out.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  const CUmemPoolProps& pool = p.poolProps;
  out.numbers = {static_cast<std::uint64_t>(pool.allocType),
                 static_cast<std::uint64_t>(pool.handleTypes),
                 static_cast<std::uint64_t>(pool.location.type),
                 static_cast<std::uint32_t>(pool.location.id),
                 pool.maxSize,
                 pool.usage,
                 p.bytesize,
                 p.dptr};
  const auto* first = reinterpret_cast<const std::uint8_t*>(p.accessDescs);
  if (p.accessDescCount) out.bytes.assign(first, first + p.accessDescCount * sizeof *p.accessDescs);
  return CUDA_SUCCESS;
}

bool take_allocation(CUgraphNode node, std::uint64_t graph, const node_parameters& from,
                     CUDA_MEM_ALLOC_NODE_PARAMS_v2& p) {
  if (from.numbers.size() != 8) return false;
  const std::uint64_t* n = from.numbers.data();
  p = {};
  p.poolProps.allocType = static_cast<CUmemAllocationType>(n[0]);
  p.poolProps.handleTypes = static_cast<CUmemAllocationHandleType>(n[1]);
  p.poolProps.location = {static_cast<CUmemLocationType>(n[2]), static_cast<int>(n[3])};
  p.poolProps.maxSize = n[4];
  p.poolProps.usage = static_cast<unsigned short>(n[5]);
  p.bytesize = n[6];
  p.dptr = n[7];
  told_table& all = told();
  const std::lock_guard lock(all.mutex);
  p.accessDescs = reinterpret_cast<const CUmemAccessDesc*>(keep(all, node, graph, from.bytes).bytes.data());
  p.accessDescCount = from.bytes.size() / sizeof *p.accessDescs;
  return true;
}

CUresult put_operations(CUcontext context, const CUstreamBatchMemOpParams* operations, unsigned count,
                        unsigned flags, node_parameters& out) {
  if (!context_ok(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (count > most_operations || (count && !operations)) return CUDA_ERROR_INVALID_VALUE;
  out.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
  out.context = value_of(context);
  out.numbers = {flags};
  const auto* first = reinterpret_cast<const std::uint8_t*>(operations);
  out.bytes.assign(first, first + count * sizeof *operations);
  return CUDA_SUCCESS;
}

bool take_operations(CUgraphNode node, std::uint64_t graph, const node_parameters& from,
                     CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& p) {
  if (from.numbers.size() != 1 || from.bytes.size() % sizeof(CUstreamBatchMemOpParams)) return false;
  told_table& all = told();
  const std::lock_guard lock(all.mutex);
  p.ctx = reinterpret_cast<CUcontext>(from.context);
  p.count = static_cast<unsigned>(from.bytes.size() / sizeof(CUstreamBatchMemOpParams));
  p.paramArray = reinterpret_cast<CUstreamBatchMemOpParams*>(keep(all, node, graph, from.bytes).bytes.data());
  p.flags = static_cast<unsigned>(from.numbers[0]);
  return true;
}

CUresult keep_bodies(CUgraphNode node, const std::vector<std::uint64_t>& graphs, CUgraphNodeParams& p) {
  if (graphs.size() != p.conditional.size) return malformed_reply(api::opcode::cuGraphAddNode_v2);
  told_table& all = told();
  const std::lock_guard lock(all.mutex);
  told_parameters& kept = keep(all, node, 0, {});
  for (const std::uint64_t graph : graphs) kept.pointers.push_back(reinterpret_cast<void*>(graph));
  p.conditional.phGraph_out = reinterpret_cast<CUgraph*>(kept.pointers.data());
  return CUDA_SUCCESS;
}

CUresult put_any(lane& own, const CUgraphNodeParams& p, node_parameters& out,
                 std::vector<std::uint64_t>& made) {
  for (const int reserved : p.reserved0) {
    if (reserved) return CUDA_ERROR_INVALID_VALUE;
  }
  switch (p.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
      CUDA_KERNEL_NODE_PARAMS_v2 kernel{};
      static_assert(sizeof kernel == sizeof p.kernel);
      std::memcpy(&kernel, &p.kernel, sizeof kernel);
      return put_kernel(own, kernel, out);
    }
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return put_copy(p.memcpy.copyParams, p.memcpy.copyCtx, out, made);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return put_fill(p.memset, out);
    case CU_GRAPH_NODE_TYPE_HOST:
      return put_host(p.host.fn, p.host.userData, out, made);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      // A graph that is moved in would keep its handle: not described yet.
      if (p.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) return CUDA_ERROR_NOT_SUPPORTED;
      return put_child(p.graph.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return out.type = p.type, CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return put_event(p.type, p.eventWait.event, out);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return put_event(p.type, p.eventRecord.event, out);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return put_allocation(p.alloc, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return out.type = p.type, out.subject = p.free.dptr, CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return put_operations(p.memOp.ctx, p.memOp.paramArray, p.memOp.count, p.memOp.flags, out);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      out.type = p.type;
      out.context = value_of(p.conditional.ctx);
      out.subject = p.conditional.handle;
      out.numbers = {static_cast<std::uint64_t>(p.conditional.type), p.conditional.size};
      return p.conditional.size && p.conditional.size <= 1024 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return p.type > CU_GRAPH_NODE_TYPE_CONDITIONAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace outboard::frontend::cuda
