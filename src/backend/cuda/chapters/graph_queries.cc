// Handlers of the chapter graph that tell: parameters and attributes of nodes, the printed form.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "backend/cuda/ends.hh"
#include "backend/cuda/graph/graph_handles.hh"
#include "backend/cuda/launch_decoding.hh"
#include "base/fd.hh"

namespace outboard::backend {
namespace {

using marshal::node_parameters;

/// A kernel by the id that the client launched it by; the driver tells a function even if it was a kernel.
std::uint64_t name_kernel(call& c, CUfunction function, CUkernel kernel) {
  object_tables& all = c.objects();
  if (kernel) return all.name_of(api::handle_kind::kernel, kernel);
  for (const api::handle_kind kind : {api::handle_kind::function, api::handle_kind::kernel}) {
    for (const std::uint64_t id : all.ids(kind)) {
      const server_object* o = all.at(id);
      if (o && o->native == function) return id;
    }
  }
  for (const std::uint64_t id : all.ids(api::handle_kind::kernel)) {
    CUfunction own = nullptr;
    const server_object* o = all.at(id);
    if (o &&
        call_driver(c.driver().cuKernelGetFunction, &own, static_cast<CUkernel>(o->native)) == CUDA_SUCCESS &&
        own == function)
      return id;
  }
  return all.name_of(api::handle_kind::function, function);
}

std::uint64_t name_context(call& c, CUcontext context) {
  for (const std::uint64_t id : c.objects().ids(api::handle_kind::context)) {
    const server_object* o = c.objects().at(id);
    if (o && o->native == context) return id;
  }
  return 0;
}

/// The bytes that the kernel reads, from the driver's array of pointers.
void pack(call& c, const CUDA_KERNEL_NODE_PARAMS_v2& p, std::vector<std::uint8_t>& bytes) {
  CUfunction function = p.func;
  if (!function) call_driver(c.driver().cuKernelGetFunction, &function, p.kern);
  for (std::size_t i = 0; p.kernelParams && i < 4096; ++i) {
    std::size_t offset = 0, size = 0;
    if (call_driver(c.driver().cuFuncGetParamInfo, function, i, &offset, &size) != CUDA_SUCCESS) break;
    if (offset + size > marshal::max_parameter_bytes || !p.kernelParams[i]) break;
    if (bytes.size() < offset + size) bytes.resize(offset + size);
    std::memcpy(bytes.data() + offset, p.kernelParams[i], size);
  }
  if (p.kernelParams) return;
  for (void** e = p.extra; e && *e != CU_LAUNCH_PARAM_END; e += 2) {
    if (*e == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes.resize(*static_cast<std::size_t*>(e[1]));
  }
  for (void** e = p.extra; e && *e != CU_LAUNCH_PARAM_END; e += 2) {
    if (*e == CU_LAUNCH_PARAM_BUFFER_POINTER && !bytes.empty()) std::memcpy(bytes.data(), e[1], bytes.size());
  }
}

CUresult of_kernel(call& c, CUgraphNode node, node_parameters& to) {
  CUDA_KERNEL_NODE_PARAMS_v2 p{};
  const CUresult code = call_driver(c.driver().cuGraphKernelNodeGetParams_v2, node, &p);
  if (code != CUDA_SUCCESS) return code;
  to.subject = name_kernel(c, p.func, p.kern);
  to.context = name_context(c, p.ctx);
  to.grid = {p.gridDimX, p.gridDimY, p.gridDimZ};
  to.block = {p.blockDimX, p.blockDimY, p.blockDimZ};
  to.shared = p.sharedMemBytes;
  pack(c, p, to.bytes);
  return code;
}

void put_side(call& c, std::vector<std::uint64_t>& n, const void* host, CUdeviceptr device, CUarray array,
              std::initializer_list<std::uint64_t> position, CUmemorytype type, std::uint64_t pitch,
              std::uint64_t height) {
  auto block = c.session.captured_copies().find(host);
  if (!block) block = c.session.captured_copies().find(reinterpret_cast<const void*>(device));
  // Page-locked memory that is no block the client knows as devices do: see locked_at() in graph_nodes.cc.
  CUdeviceptr alias = 0;
  if (!block && type == CU_MEMORYTYPE_HOST && host &&
      call_driver(c.driver().cuMemHostGetDevicePointer_v2, &alias, const_cast<void*>(host), 0) ==
          CUDA_SUCCESS)
    type = CU_MEMORYTYPE_DEVICE, device = alias;
  n.insert(n.end(), position);
  n.push_back(static_cast<std::uint64_t>(block ? CU_MEMORYTYPE_HOST : type));
  n.push_back(block ? block->id : 0);
  n.push_back(block ? 0 : device);
  n.push_back(array ? c.objects().name_of(api::handle_kind::array, array) : 0);
  n.push_back(pitch);
  n.push_back(height);
}

CUresult of_copy(call& c, CUgraphNode node, node_parameters& to) {
  CUDA_MEMCPY3D p{};
  const CUresult code = call_driver(c.driver().cuGraphMemcpyNodeGetParams, node, &p);
  if (code != CUDA_SUCCESS) return code;
  put_side(c, to.numbers, p.srcHost, p.srcDevice, p.srcArray, {p.srcXInBytes, p.srcY, p.srcZ, p.srcLOD},
           p.srcMemoryType, p.srcPitch, p.srcHeight);
  put_side(c, to.numbers, p.dstHost, p.dstDevice, p.dstArray, {p.dstXInBytes, p.dstY, p.dstZ, p.dstLOD},
           p.dstMemoryType, p.dstPitch, p.dstHeight);
  to.numbers.insert(to.numbers.end(), {p.WidthInBytes, p.Height, p.Depth});
  return code;
}

template <class T>
void put_raw(const T* items, std::size_t count, std::vector<std::uint8_t>& to) {
  const auto* first = reinterpret_cast<const std::uint8_t*>(items);
  if (items) to.assign(first, first + count * sizeof *items);
}

CUresult of_allocation(call& c, CUgraphNode node, node_parameters& to) {
  CUDA_MEM_ALLOC_NODE_PARAMS_v1 p{};
  const CUresult code = call_driver(c.driver().cuGraphMemAllocNodeGetParams, node, &p);
  if (code != CUDA_SUCCESS) return code;
  const CUmemPoolProps& pool = p.poolProps;
  to.numbers = {static_cast<std::uint64_t>(pool.allocType),
                static_cast<std::uint64_t>(pool.handleTypes),
                static_cast<std::uint64_t>(pool.location.type),
                static_cast<std::uint32_t>(pool.location.id),
                pool.maxSize,
                pool.usage,
                p.bytesize,
                p.dptr};
  put_raw(p.accessDescs, std::min<std::size_t>(p.accessDescCount, 64), to.bytes);
  return code;
}

CUresult of_operations(call& c, CUgraphNode node, node_parameters& to) {
  CUDA_BATCH_MEM_OP_NODE_PARAMS_v1 p{};
  const CUresult code = call_driver(c.driver().cuGraphBatchMemOpNodeGetParams, node, &p);
  if (code != CUDA_SUCCESS) return code;
  to.context = name_context(c, p.ctx);
  to.numbers = {p.flags};
  put_raw(p.paramArray, std::min(p.count, 256u), to.bytes);
  return code;
}

CUresult of_function(call& c, CUgraphNode node, node_parameters& to) {
  CUDA_HOST_NODE_PARAMS_v1 p{};
  const CUresult code = call_driver(c.driver().cuGraphHostNodeGetParams, node, &p);
  if (code == CUDA_SUCCESS && p.fn == host_calls::run)
    to.subject = static_cast<host_calls::function*>(p.userData)->id;
  return code;
}

CUresult of_event(call& c, CUresult (*entry)(CUgraphNode, CUevent*), CUgraphNode node, node_parameters& to) {
  CUevent event = nullptr;
  const CUresult code = call_driver(entry, node, &event);
  if (code == CUDA_SUCCESS && event) to.subject = c.objects().name_of(api::handle_kind::event, event);
  return code;
}

CUresult of_fill(call& c, CUgraphNode node, node_parameters& to) {
  CUDA_MEMSET_NODE_PARAMS_v1 p{};
  const CUresult code = call_driver(c.driver().cuGraphMemsetNodeGetParams, node, &p);
  if (code == CUDA_SUCCESS) to.numbers = {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height};
  return code;
}

CUresult parameters_of(call& c, CUgraphNode node, void* graph, node_parameters& to) {
  const api::driver_table& d = c.driver();
  switch (to.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return of_kernel(c, node, to);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return of_copy(c, node, to);
    case CU_GRAPH_NODE_TYPE_MEMSET:
      return of_fill(c, node, to);
    case CU_GRAPH_NODE_TYPE_HOST:
      return of_function(c, node, to);
    case CU_GRAPH_NODE_TYPE_GRAPH: {
      CUgraph child = nullptr;
      const CUresult code = call_driver(d.cuGraphChildGraphNodeGetGraph, node, &child);
      if (code == CUDA_SUCCESS) to.subject = name_graph(c, child, graph);
      return code;
    }
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
      return of_event(c, d.cuGraphEventWaitNodeGetEvent, node, to);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
      return of_event(c, d.cuGraphEventRecordNodeGetEvent, node, to);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
      return of_allocation(c, node, to);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: {
      CUdeviceptr address = 0;
      const CUresult code = call_driver(d.cuGraphMemFreeNodeGetParams, node, &address);
      to.subject = address;
      return code;
    }
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
      return of_operations(c, node, to);
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult describe_node(call& c, CUgraphNode node, CUgraph graph, node_parameters& out) {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  const CUresult code = call_driver(c.driver().cuGraphNodeGetType, node, &type);
  if (code != CUDA_SUCCESS) return code;
  out.type = type;
  return type == CU_GRAPH_NODE_TYPE_EMPTY ? code : parameters_of(c, node, graph, out);
}

namespace {

/// The driver prints to a file only: one in memory, which it opens by its name in /proc.
CUresult print(const api::driver_table& d, CUgraph graph, unsigned flags, std::string& text) {
  const unique_fd file(::memfd_create("graph", MFD_CLOEXEC));
  if (!file) return CUDA_ERROR_OPERATING_SYSTEM;
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  const CUresult code = call_driver(d.cuGraphDebugDotPrint, graph, path.c_str(), flags);
  if (code != CUDA_SUCCESS) return code;
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  constexpr off_t most = 15 << 20;  // below a frame
  if (size < 0 || size > most) return CUDA_ERROR_OUT_OF_MEMORY;
  text.resize(static_cast<std::size_t>(size));
  return ::pread(file.get(), text.data(), text.size(), 0) == size ? code : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace

namespace ends {

outcome cuGraphKernelNodeGetParams_v2(call& c, const marshal::nodes_body& body) {
  CUgraphNode node = nullptr;
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  marshal::get_node_reply reply;
  CUresult code = find(c, body.subject, node);
  if (code == CUDA_SUCCESS) code = call_driver(c.driver().cuGraphNodeGetType, node, &type);
  if (code == CUDA_SUCCESS && static_cast<std::uint64_t>(type) != body.capacity)
    code = CUDA_ERROR_INVALID_VALUE;
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  void* graph = c.objects().parent_of(body.subject);
  reply.graph = name_graph(c, static_cast<CUgraph>(graph), nullptr);
  reply.node.type = static_cast<std::int32_t>(type);
  code = parameters_of(c, node, graph, reply.node);
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuGraphKernelNodeGetAttribute(call& c, const marshal::attribute_body& body) {
  CUgraphNode node = nullptr;
  if (const CUresult code = find(c, body.subject, node); code != CUDA_SUCCESS) return outcome::answer(code);
  CUkernelNodeAttrValue value{};
  const auto id = static_cast<CUkernelNodeAttrID>(body.id);
  std::memcpy(&value, body.value.data(), sizeof value);
  // Others hold an event, make a node that kernels know, or are new: not by a value that a peer chose.
  if (body.set && !is_plain_attribute(body.id)) return outcome::answer(refusal_of_attribute(body.id));
  if (body.set) {
    note_change_of_node(c, body.subject, object_tables::untold);
    return outcome::answer(call_driver(c.driver().cuGraphKernelNodeSetAttribute, node, id, &value));
  }
  std::memset(&value, 0, sizeof value);
  const CUresult code = call_driver(c.driver().cuGraphKernelNodeGetAttribute, node, id, &value);
  if (!hide_handles(body.id, value)) return outcome::answer(CUDA_ERROR_INVALID_VALUE);
  marshal::attribute_reply reply;
  std::memcpy(reply.value.data(), &value, sizeof value);
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuGraphKernelNodeCopyAttributes(call& c, const marshal::nodes_body& body) {
  CUgraphNode to = nullptr, from = nullptr;
  CUresult code = find(c, body.subject, to);
  if (code == CUDA_SUCCESS) code = find(c, body.capacity, from);
  note_change_of_node(c, body.subject, object_tables::untold);
  return outcome::answer(
      code == CUDA_SUCCESS ? call_driver(c.driver().cuGraphKernelNodeCopyAttributes, to, from) : code);
}

outcome cuGraphDebugDotPrint(call& c, const marshal::nodes_body& body) {
  CUgraph graph = nullptr;
  marshal::text_reply reply;
  CUresult code = find(c, body.subject, graph);
  if (code == CUDA_SUCCESS) code = print(c.driver(), graph, static_cast<unsigned>(body.capacity), reply.text);
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend
