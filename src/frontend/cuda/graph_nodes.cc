#include "frontend/cuda/graph_nodes.hh"

#include <cstring>

#include "frontend/cuda/chapters/launch.hh"
#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/copying/copies.hh"

namespace outboard::frontend::cuda {
namespace {

constexpr unsigned most_operations = 256;
/// Stands where the program's function would: its address is all that it has.
char host_copy_mark;

/// What the program was given pointers to: valid until the node goes or is asked again.
struct given_parameters {
  std::uint64_t graph = 0;
  std::vector<std::uint8_t> bytes;
  std::vector<void*> pointers;
};

struct given_table {
  std::mutex mutex;
  std::map<std::uint64_t, given_parameters> by_node;
};

given_table& given() {
  static given_table* const the_one =
      new given_table;  // never destroyed: calls come from destructors after main too
  return *the_one;
}

given_parameters& keep(given_table& all, CUgraphNode node, std::uint64_t graph,
                       const std::vector<std::uint8_t>& bytes) {
  given_parameters& kept = all.by_node[value_of(node)];
  kept.graph = graph;
  kept.bytes = bytes;
  kept.pointers.clear();
  return kept;
}

bool context_ok(const lane& own, CUcontext context) {
  return !context || own.state().devices.find_context(value_of(context));
}

/// One end of a copy as the program gives it.
struct side {
  std::size_t x, y, z, lod;
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  std::size_t pitch, height;
};

bool on_host(const lane& own, const side& s) {
  if (s.type != CU_MEMORYTYPE_UNIFIED) return s.type == CU_MEMORYTYPE_HOST;
  const auto block = own.state().memory.addresses.find(s.device);
  return !block || is_host(block->kind);
}

side from_of(const CUDA_MEMCPY3D& p) {
  return {p.srcXInBytes, p.srcY,      p.srcZ,     p.srcLOD,   p.srcMemoryType,
          p.srcHost,     p.srcDevice, p.srcArray, p.srcPitch, p.srcHeight};
}
side to_of(const CUDA_MEMCPY3D& p) {
  return {p.dstXInBytes, p.dstY,      p.dstZ,     p.dstLOD,   p.dstMemoryType,
          p.dstHost,     p.dstDevice, p.dstArray, p.dstPitch, p.dstHeight};
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

CUresult check_copy(const lane& own, const CUDA_MEMCPY3D& p, CUcontext context) {
  if (!context_ok(own, context)) return CUDA_ERROR_INVALID_CONTEXT;
  return p.WidthInBytes && p.Height && p.Depth ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult put_side(const lane& own, side s, bool written, const CUDA_MEMCPY3D& p, marshal::copy_side& out,
                  std::vector<std::uint64_t>& made) {
  // Managed memory is the server's too, and may be closed here while the graph runs.
  if (const auto place = reinterpret_cast<CUdeviceptr>(s.host);
      s.type == CU_MEMORYTYPE_HOST && on_device(own, place))
    s.type = CU_MEMORYTYPE_DEVICE, s.device = place;
  if (!on_host(own, s)) {
    const auto type = s.type == CU_MEMORYTYPE_UNIFIED ? CU_MEMORYTYPE_DEVICE : s.type;
    const bool array = type == CU_MEMORYTYPE_ARRAY;
    if (array ? !find_object<object>(own, s.array) : s.device == 0) return CUDA_ERROR_INVALID_VALUE;
    out = {.x = s.x,
           .y = s.y,
           .z = s.z,
           .level = s.lod,
           .memory = static_cast<std::uint32_t>(type),
           .address = array ? 0 : s.device,
           .array = array ? value_of(s.array) : 0,
           .pitch = s.pitch,
           .height = s.height};
    return CUDA_SUCCESS;
  }
  host_box box;
  if (!box_of(s, p, box)) return CUDA_ERROR_INVALID_VALUE;
  box.written = written;
  process& all = own.state();
  made.push_back(all.functions.add(*all.connection.server(), box));
  out = {.memory = CU_MEMORYTYPE_HOST, .box = made.back(), .pitch = p.WidthInBytes, .height = p.Height};
  return CUDA_SUCCESS;
}

}  // namespace

void forget_given(std::uint64_t graph, std::uint64_t node) {
  given_table& all = given();
  const std::lock_guard lock(all.mutex);
  all.by_node.erase(node);
  if (graph) std::erase_if(all.by_node, [&](const auto& entry) { return entry.second.graph == graph; });
}

CUresult put_kernel(lane& own, const CUDA_KERNEL_NODE_PARAMS_v2& p, node_parameters& out) {
  const CUfunction function = p.func ? p.func : reinterpret_cast<CUfunction>(p.kern);
  kernel_object* kernel = find_kernel(own, function);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  if (!context_ok(own, p.ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  if (p.kernelParams && p.extra) return CUDA_ERROR_INVALID_VALUE;
  marshal::kernel_node node{.context = value_of(p.ctx),
                            .kernel = value_of(function),
                            .grid = {p.gridDimX, p.gridDimY, p.gridDimZ},
                            .block = {p.blockDimX, p.blockDimY, p.blockDimZ},
                            .shared = p.sharedMemBytes};
  if (p.extra) {
    const auto packed = packed_buffer(p.extra);
    if (!packed || packed->size() > marshal::max_parameter_bytes) return CUDA_ERROR_INVALID_VALUE;
    const auto* first = reinterpret_cast<const std::uint8_t*>(packed->data());
    node.parameters.assign(first, first + packed->size());
    return out.node = std::move(node), CUDA_SUCCESS;
  }
  if (const CUresult code = know_layout(own, *kernel, value_of(function)); code != CUDA_SUCCESS) return code;
  if (!p.kernelParams && !kernel->parameters.empty()) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < kernel->parameters.size(); ++i) {
    if (!p.kernelParams[i]) return CUDA_ERROR_INVALID_VALUE;
  }
  node.parameters.assign(kernel->parameter_bytes, 0);
  pack_parameters(std::as_writable_bytes(std::span(node.parameters)), kernel->parameters, p.kernelParams);
  return out.node = std::move(node), CUDA_SUCCESS;
}

bool take_kernel(lane& own, CUgraphNode node, std::uint64_t graph, const marshal::kernel_node& from,
                 CUDA_KERNEL_NODE_PARAMS_v2& p) {
  kernel_object* kernel = find_kernel(own, reinterpret_cast<CUfunction>(from.kernel));
  if (!kernel || know_layout(own, *kernel, from.kernel) != CUDA_SUCCESS ||
      from.parameters.size() < kernel->parameter_bytes)
    return false;
  p = {};
  // Both names, where there are two: runtimes know their kernels by the one or the other.
  if (wire::handle{from.kernel}.kind() == static_cast<std::uint8_t>(api::handle_kind::kernel)) {
    p.kern = reinterpret_cast<CUkernel>(from.kernel);
    if (function_of_kernel(own, p.kern, p.func) != CUDA_SUCCESS) p.func = nullptr;
  } else {
    p.func = reinterpret_cast<CUfunction>(from.kernel);
    p.kern = reinterpret_cast<CUkernel>(kernel->kernel);
  }
  p.ctx = reinterpret_cast<CUcontext>(from.context);
  p.gridDimX = from.grid[0], p.gridDimY = from.grid[1], p.gridDimZ = from.grid[2];
  p.blockDimX = from.block[0], p.blockDimY = from.block[1], p.blockDimZ = from.block[2];
  p.sharedMemBytes = from.shared;
  given_table& all = given();
  const std::lock_guard lock(all.mutex);
  given_parameters& kept = keep(all, node, graph, from.parameters);
  for (const auto& parameter : kernel->parameters)
    kept.pointers.push_back(kept.bytes.data() + parameter.offset);
  kept.pointers.push_back(nullptr);
  p.kernelParams = kept.pointers.data();
  return true;
}

CUresult put_copy_node(const lane& own, const CUDA_MEMCPY3D& p, CUcontext context, marshal::copy_node& out,
                       std::vector<std::uint64_t>& made) {
  if (const CUresult code = check_copy(own, p, context); code != CUDA_SUCCESS) return code;
  out.context = value_of(context);
  if (const CUresult code = put_side(own, from_of(p), false, p, out.from, made); code != CUDA_SUCCESS)
    return code;
  if (const CUresult code = put_side(own, to_of(p), true, p, out.to, made); code != CUDA_SUCCESS) return code;
  out.width = p.WidthInBytes, out.height = p.Height, out.depth = p.Depth;
  return CUDA_SUCCESS;
}

CUresult put_copy(const lane& own, const CUDA_MEMCPY3D& p, CUcontext context, node_parameters& out,
                  std::vector<std::uint64_t>& made) {
  if (const CUresult code = check_copy(own, p, context); code != CUDA_SUCCESS) return code;
  if (copies_on_host(own, p)) return put_host_copy(own, p, out, made);
  return put_copy_node(own, p, context, out.node.emplace<marshal::copy_node>(), made);
}

bool copies_on_host(const lane& own, const CUDA_MEMCPY3D& p) {
  return on_host(own, from_of(p)) && on_host(own, to_of(p));
}

std::uint64_t add_host_copy(const lane& own, const CUDA_MEMCPY3D& p) {
  host_box from, to;
  if (!box_of(from_of(p), p, from) || !box_of(to_of(p), p, to)) return 0;
  process& all = own.state();
  const auto kept = std::make_shared<CUDA_MEMCPY3D>(p);
  const auto run = [kept, from, to](std::int32_t) {
    for (std::uint64_t z = 0; z < to.depth; ++z) {
      for (std::uint64_t y = 0; y < to.height; ++y) {
        std::memmove(to.base + z * to.slice + y * to.pitch, from.base + z * from.slice + y * from.pitch,
                     to.width);
      }
    }
  };
  return all.functions.add(*all.connection.server(), run, {&host_copy_mark, kept.get()});
}

CUresult put_host_copy(const lane& own, const CUDA_MEMCPY3D& p, node_parameters& out,
                       std::vector<std::uint64_t>& made) {
  const std::uint64_t function = add_host_copy(own, p);
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  out.node = marshal::host_node{.function = function};
  made.push_back(function);
  return CUDA_SUCCESS;
}

const CUDA_MEMCPY3D* host_copy_of(const lane& own, std::uint64_t function) {
  const auto [mark, copy] = own.state().functions.pointers(function);
  return mark == &host_copy_mark ? static_cast<const CUDA_MEMCPY3D*>(copy) : nullptr;
}

void take_copy(const lane& own, const marshal::copy_node& from, CUDA_MEMCPY3D& p) {
  const auto host = [&](std::uint64_t id) { return own.state().functions.box(id); };
  p = {};
  const marshal::copy_side& s = from.from;
  p.srcMemoryType = static_cast<CUmemorytype>(s.memory);
  p.srcXInBytes = s.x, p.srcY = s.y, p.srcZ = s.z, p.srcLOD = s.level, p.srcDevice = s.address;
  p.srcArray = reinterpret_cast<CUarray>(s.array), p.srcPitch = s.pitch, p.srcHeight = s.height;
  if (const auto box = host(s.box))
    p.srcHost = box->base, p.srcPitch = box->pitch, p.srcHeight = box->slice / box->pitch;
  const marshal::copy_side& t = from.to;
  p.dstMemoryType = static_cast<CUmemorytype>(t.memory);
  p.dstXInBytes = t.x, p.dstY = t.y, p.dstZ = t.z, p.dstLOD = t.level, p.dstDevice = t.address;
  p.dstArray = reinterpret_cast<CUarray>(t.array), p.dstPitch = t.pitch, p.dstHeight = t.height;
  if (const auto box = host(t.box))
    p.dstHost = box->base, p.dstPitch = box->pitch, p.dstHeight = box->slice / box->pitch;
  p.WidthInBytes = from.width, p.Height = from.height, p.Depth = from.depth;
}

CUresult put_fill(const lane& own, const CUDA_MEMSET_NODE_PARAMS_v2& p, node_parameters& out) {
  if (!context_ok(own, p.ctx)) return CUDA_ERROR_INVALID_CONTEXT;
  out.node = marshal::memset_node{.context = value_of(p.ctx),
                                  .address = p.dst,
                                  .pitch = p.pitch,
                                  .value = p.value,
                                  .element_size = p.elementSize,
                                  .width = p.width,
                                  .height = p.height};
  return CUDA_SUCCESS;
}

void take_fill(const marshal::memset_node& from, CUDA_MEMSET_NODE_PARAMS_v2& p) {
  p = {.dst = from.address,
       .pitch = from.pitch,
       .value = from.value,
       .elementSize = from.element_size,
       .width = from.width,
       .height = from.height,
       .ctx = reinterpret_cast<CUcontext>(from.context)};
}

CUresult put_host(const lane& own, CUhostFn function, void* data, node_parameters& out,
                  std::vector<std::uint64_t>& made) {
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  process& all = own.state();
  made.push_back(all.functions.add(*all.connection.server(),
                                   [function, data](std::int32_t) { function(data); },
                                   {reinterpret_cast<void*>(function), data}));
  out.node = marshal::host_node{.function = made.back()};
  return CUDA_SUCCESS;
}

bool take_host(const lane& own, const marshal::host_node& from, CUDA_HOST_NODE_PARAMS_v1& p) {
  const auto [function, data] = own.state().functions.pointers(from.function);
  if (!function || function == &host_copy_mark) return false;
  p = {reinterpret_cast<CUhostFn>(function), data};
  return true;
}

CUresult put_wait(const lane& own, CUevent event, node_parameters& out) {
  if (!find_object<object>(own, event)) return CUDA_ERROR_INVALID_VALUE;
  out.node = marshal::wait_node{.event = value_of(event)};
  return CUDA_SUCCESS;
}

CUresult put_record(const lane& own, CUevent event, node_parameters& out) {
  if (!find_object<object>(own, event)) return CUDA_ERROR_INVALID_VALUE;
  out.node = marshal::record_node{.event = value_of(event)};
  return CUDA_SUCCESS;
}

CUresult put_child(const lane& own, CUgraph graph, node_parameters& out) {
  if (!graph_ok(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  out.node = marshal::child_node{.graph = value_of(graph)};
  return CUDA_SUCCESS;
}

CUresult put_allocation(const lane& own, const CUDA_MEM_ALLOC_NODE_PARAMS_v2& p, node_parameters& out) {
  own.state().memory.use_graph_memory();
  if (p.accessDescCount > 64 || (p.accessDescCount && !p.accessDescs)) return CUDA_ERROR_INVALID_VALUE;
  const CUmemPoolProps& pool = p.poolProps;
  marshal::alloc_node node{.allocation_type = static_cast<std::int32_t>(pool.allocType),
                           .handle_types = static_cast<std::int32_t>(pool.handleTypes),
                           .location_type = static_cast<std::int32_t>(pool.location.type),
                           .location = pool.location.id,
                           .max_size = pool.maxSize,
                           .usage = pool.usage,
                           .size = p.bytesize,
                           .address = p.dptr};
  const auto* first = reinterpret_cast<const std::uint8_t*>(p.accessDescs);
  if (p.accessDescCount) node.access.assign(first, first + p.accessDescCount * sizeof *p.accessDescs);
  return out.node = std::move(node), CUDA_SUCCESS;
}

void take_allocation(CUgraphNode node, std::uint64_t graph, const marshal::alloc_node& from,
                     CUDA_MEM_ALLOC_NODE_PARAMS_v2& p) {
  p = {};
  p.poolProps.allocType = static_cast<CUmemAllocationType>(from.allocation_type);
  p.poolProps.handleTypes = static_cast<CUmemAllocationHandleType>(from.handle_types);
  p.poolProps.location = {static_cast<CUmemLocationType>(from.location_type), from.location};
  p.poolProps.maxSize = from.max_size;
  p.poolProps.usage = from.usage;
  p.bytesize = from.size;
  p.dptr = from.address;
  given_table& all = given();
  const std::lock_guard lock(all.mutex);
  p.accessDescs = reinterpret_cast<const CUmemAccessDesc*>(keep(all, node, graph, from.access).bytes.data());
  p.accessDescCount = from.access.size() / sizeof *p.accessDescs;
}

CUresult put_operations(const lane& own, CUcontext context, const CUstreamBatchMemOpParams* operations,
                        unsigned count, unsigned flags, node_parameters& out) {
  if (!context_ok(own, context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (count > most_operations || (count && !operations)) return CUDA_ERROR_INVALID_VALUE;
  marshal::operations_node node{.context = value_of(context), .flags = flags};
  const auto* first = reinterpret_cast<const std::uint8_t*>(operations);
  node.operations.assign(first, first + count * sizeof *operations);
  return out.node = std::move(node), CUDA_SUCCESS;
}

bool take_operations(CUgraphNode node, std::uint64_t graph, const marshal::operations_node& from,
                     CUDA_BATCH_MEM_OP_NODE_PARAMS_v1& p) {
  if (from.operations.size() % sizeof(CUstreamBatchMemOpParams)) return false;
  given_table& all = given();
  const std::lock_guard lock(all.mutex);
  p.ctx = reinterpret_cast<CUcontext>(from.context);
  p.count = static_cast<unsigned>(from.operations.size() / sizeof(CUstreamBatchMemOpParams));
  p.paramArray =
      reinterpret_cast<CUstreamBatchMemOpParams*>(keep(all, node, graph, from.operations).bytes.data());
  p.flags = from.flags;
  return true;
}

CUresult keep_bodies(const lane& own, CUgraphNode node, const std::vector<std::uint64_t>& graphs,
                     CUgraphNodeParams& p) {
  if (graphs.size() != p.conditional.size)
    return malformed_reply(own, static_cast<std::uint32_t>(api::opcode::cuGraphAddNode_v2));
  given_table& all = given();
  const std::lock_guard lock(all.mutex);
  given_parameters& kept = keep(all, node, 0, {});
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
      return put_copy(own, p.memcpy.copyParams, p.memcpy.copyCtx, out, made);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return put_fill(own, p.memset, out);
    case CU_GRAPH_NODE_TYPE_HOST:
      return put_host(own, p.host.fn, p.host.userData, out, made);
    case CU_GRAPH_NODE_TYPE_GRAPH:
      // A graph that is moved in would keep its handle: not described yet.
      if (p.graph.ownership != CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE) return CUDA_ERROR_NOT_SUPPORTED;
      return put_child(own, p.graph.graph, out);
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return out.node = marshal::empty_node{}, CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return put_wait(own, p.eventWait.event, out);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return put_record(own, p.eventRecord.event, out);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return put_allocation(own, p.alloc, out);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
      return out.node = marshal::free_node{.address = p.free.dptr}, CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return put_operations(own, p.memOp.ctx, p.memOp.paramArray, p.memOp.count, p.memOp.flags, out);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
      out.node = marshal::conditional_node{.context = value_of(p.conditional.ctx),
                                           .condition = p.conditional.handle,
                                           .kind = static_cast<std::int32_t>(p.conditional.type),
                                           .size = p.conditional.size};
      return p.conditional.size && p.conditional.size <= 1024 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
      return p.type > CU_GRAPH_NODE_TYPE_CONDITIONAL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
  }
}

}  // namespace outboard::frontend::cuda
