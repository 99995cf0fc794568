// Entries of the chapter graph that make nodes and tell or change their parameters.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "device/cpu/graph/graph_nodes.hh"

namespace outboard::device::cpu {
namespace {

struct place {
  CUgraphNode* out;
  CUgraph graph;
  const CUgraphNode* before;
  std::size_t count;
};

/// A conditional handle is of one graph, and a graph frees an address once.
bool belongs(const graph_object& graph, const node_work& work) {
  if (const auto* conditional = std::get_if<conditional_work>(&work))
    return std::ranges::find(graph.conditions, conditional->value) != graph.conditions.end();
  const auto* release = std::get_if<release_work>(&work);
  return release == nullptr || std::ranges::none_of(graph.nodes, [&](const auto& node) {
           const auto* other = std::get_if<release_work>(&node->work);
           return other != nullptr && other->address == release->address;
         });
}

/// `make` gives the work, once everything else is in order.
template <class Make>
CUresult add(const place& where, CUgraphNodeType type, Make&& make, CUgraph** conditional = nullptr) {
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(where.graph);
    std::vector<graph_node*> before;
    if (where.out == nullptr || graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = find_nodes(*graph, where.before, where.count, before); r != CUDA_SUCCESS) return r;
    node_work work;
    if (const CUresult r = make(work); r != CUDA_SUCCESS) return r;
    if (!belongs(*graph, work)) return CUDA_ERROR_INVALID_VALUE;
    graph_node* made = add_node(*graph, type, std::move(work), before);
    if (conditional != nullptr) *conditional = std::get<conditional_work>(made->work).handles.data();
    return *where.out = handle_of(*made), CUDA_SUCCESS;
  });
}

template <class Read>
CUresult read(CUgraphNode handle, CUgraphNodeType type, const void* out, Read&& give) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    const auto node = find_node(handle);
    if (node == nullptr || node->type != type) return CUDA_ERROR_INVALID_VALUE;
    return give(*node), CUDA_SUCCESS;
  });
}

template <class Make>
CUresult change(CUgraphNode handle, CUgraphNodeType type, Make&& make) {
  return with_graphs([&]() -> CUresult {
    const auto node = find_node(handle);
    if (node == nullptr || node->type != type) return CUDA_ERROR_INVALID_VALUE;
    node_work work;
    if (const CUresult r = make(work); r != CUDA_SUCCESS) return r;
    if (auto* kernel = std::get_if<kernel_work>(&work)) {
      kernel->attributes = std::get<kernel_work>(node->work).attributes;  // they stay
      kernel->how.cooperative = std::get<kernel_work>(node->work).how.cooperative;
    }
    return node->work = std::move(work), CUDA_SUCCESS;
  });
}

#define OUTBOARD_PLACE CUgraphNode *out, CUgraph graph, const CUgraphNode *before, std::size_t count

// --- kernels
kernel_parameters widened(const CUDA_KERNEL_NODE_PARAMS_v1& p) {
  kernel_parameters out{};
  static_assert(sizeof p <= sizeof out &&
                offsetof(kernel_parameters, extra) == offsetof(CUDA_KERNEL_NODE_PARAMS_v1, extra));
  std::memcpy(&out, &p, sizeof p);
  return out;
}

CUresult add_kernel_v2(OUTBOARD_PLACE, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_KERNEL,
             [&](node_work& w) { return make_kernel(*p, w); });
}
CUresult add_kernel(OUTBOARD_PLACE, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const kernel_parameters wide = widened(*p);
  return add_kernel_v2(out, graph, before, count, &wide);
}

CUresult get_kernel_v2(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v2* p) {
  return read(handle, CU_GRAPH_NODE_TYPE_KERNEL, p, [&](graph_node& node) {
    auto& work = std::get<kernel_work>(node.work);
    *p = {};
    const bool function = type_of(number(work.function)) == handle_type::function;
    p->func = function ? work.function : nullptr;
    p->kern = function ? nullptr : reinterpret_cast<CUkernel>(work.function);
    p->gridDimX = work.how.grid[0], p->gridDimY = work.how.grid[1], p->gridDimZ = work.how.grid[2];
    p->blockDimX = work.how.block[0], p->blockDimY = work.how.block[1], p->blockDimZ = work.how.block[2];
    p->sharedMemBytes = work.how.shared;
    p->ctx = reinterpret_cast<CUcontext>(work.owner->handle);
    node.told.clear();
    for (const auto& parameter : work.what.info->parameters)
      node.told.push_back(work.parameters.data() + parameter.offset);
    node.told.push_back(nullptr);
    p->kernelParams = node.told.data();
  });
}
CUresult get_kernel(CUgraphNode handle, CUDA_KERNEL_NODE_PARAMS_v1* p) {
  kernel_parameters wide{};
  const CUresult r = get_kernel_v2(handle, p != nullptr ? &wide : nullptr);
  if (r == CUDA_SUCCESS) {
    if (wide.func == nullptr) wide.func = reinterpret_cast<CUfunction>(wide.kern);
    std::memcpy(p, &wide, sizeof *p);
  }
  return r;
}

CUresult set_kernel_v2(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v2* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(handle, CU_GRAPH_NODE_TYPE_KERNEL, [&](node_work& w) { return make_kernel(*p, w); });
}
CUresult set_kernel(CUgraphNode handle, const CUDA_KERNEL_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const kernel_parameters wide = widened(*p);
  return set_kernel_v2(handle, &wide);
}

bool known_attribute(CUkernelNodeAttrID id) {
  return id > CU_LAUNCH_ATTRIBUTE_IGNORE && id <= CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
}

CUresult get_attribute(CUgraphNode handle, CUkernelNodeAttrID id, CUkernelNodeAttrValue* out) {
  if (!known_attribute(id)) return CUDA_ERROR_INVALID_VALUE;
  return read(handle, CU_GRAPH_NODE_TYPE_KERNEL, out, [&](graph_node& node) {
    const auto& work = std::get<kernel_work>(node.work);
    std::memset(static_cast<void*>(out), 0, sizeof *out);
    for (const CUlaunchAttribute& a : work.attributes) {
      if (a.id == id) *out = a.value;
    }
  });
}
CUresult set_attribute(CUgraphNode handle, CUkernelNodeAttrID id, const CUkernelNodeAttrValue* value) {
  if (!known_attribute(id)) return CUDA_ERROR_INVALID_VALUE;
  return read(handle, CU_GRAPH_NODE_TYPE_KERNEL, value, [&](graph_node& node) {
    auto& work = std::get<kernel_work>(node.work);
    std::erase_if(work.attributes, [&](const CUlaunchAttribute& a) { return a.id == id; });
    CUlaunchAttribute a{};
    a.id = id;
    a.value = *value;
    work.attributes.push_back(a);
    if (id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE) work.how.cooperative = value->cooperative != 0;
  });
}
CUresult copy_attributes(CUgraphNode to, CUgraphNode from) {
  return with_graphs([&]() -> CUresult {
    const auto target = find_node(to), source = find_node(from);
    if (target == nullptr || source == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto* into = std::get_if<kernel_work>(&target->work);
    const auto* what = std::get_if<kernel_work>(&source->work);
    if (into == nullptr || what == nullptr) return CUDA_ERROR_INVALID_VALUE;
    into->attributes = what->attributes;
    into->how.cooperative = what->how.cooperative;
    return CUDA_SUCCESS;
  });
}

// --- copies, fills, host functions
CUresult add_copy(OUTBOARD_PLACE, const CUDA_MEMCPY3D* p, CUcontext context) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_MEMCPY,
             [&](node_work& w) { return make_copy(*p, context, w); });
}
CUresult get_copy(CUgraphNode handle, CUDA_MEMCPY3D* p) {
  return read(handle, CU_GRAPH_NODE_TYPE_MEMCPY, p,
              [&](graph_node& n) { *p = std::get<copy_work>(n.work).about; });
}
CUcontext context_of_node(CUgraphNode handle) {
  const auto node = find_node(handle);
  const auto* work = node != nullptr ? std::get_if<copy_work>(&node->work) : nullptr;
  return work != nullptr ? reinterpret_cast<CUcontext>(work->owner->handle) : nullptr;
}
CUresult set_copy(CUgraphNode handle, const CUDA_MEMCPY3D* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(handle, CU_GRAPH_NODE_TYPE_MEMCPY,
                [&](node_work& w) { return make_copy(*p, context_of_node(handle), w); });
}

CUDA_MEMSET_NODE_PARAMS_v2 widened(const CUDA_MEMSET_NODE_PARAMS_v1& p, CUcontext context) {
  return {p.dst, p.pitch, p.value, p.elementSize, p.width, p.height, context};
}
CUresult add_fill(OUTBOARD_PLACE, const CUDA_MEMSET_NODE_PARAMS_v1* p, CUcontext context) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_MEMSET,
             [&](node_work& w) { return make_fill(widened(*p, context), w); });
}
CUresult get_fill(CUgraphNode handle, CUDA_MEMSET_NODE_PARAMS_v1* p) {
  return read(handle, CU_GRAPH_NODE_TYPE_MEMSET, p, [&](graph_node& n) {
    const auto& about = std::get<fill_work>(n.work).about;
    *p = {about.dst, about.pitch, about.value, about.elementSize, about.width, about.height};
  });
}
CUresult set_fill(CUgraphNode handle, const CUDA_MEMSET_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(handle, CU_GRAPH_NODE_TYPE_MEMSET, [&](node_work& w) {
    const auto node = find_node(handle);
    return make_fill(widened(*p, std::get<fill_work>(node->work).about.ctx), w);
  });
}

CUresult add_host(OUTBOARD_PLACE, const CUDA_HOST_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_HOST,
             [&](node_work& w) { return make_host(p->fn, p->userData, w); });
}
CUresult get_host(CUgraphNode handle, CUDA_HOST_NODE_PARAMS_v1* p) {
  return read(handle, CU_GRAPH_NODE_TYPE_HOST, p, [&](graph_node& n) {
    const auto& work = std::get<host_work>(n.work);
    *p = {work.function, work.data};
  });
}
CUresult set_host(CUgraphNode handle, const CUDA_HOST_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(handle, CU_GRAPH_NODE_TYPE_HOST,
                [&](node_work& w) { return make_host(p->fn, p->userData, w); });
}

// --- child graphs, nothing, events
CUresult add_child(OUTBOARD_PLACE, CUgraph child) {
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_GRAPH,
             [&](node_work& w) { return make_child(child, w); });
}
CUresult get_child(CUgraphNode handle, CUgraph* out) {
  return read(handle, CU_GRAPH_NODE_TYPE_GRAPH, out, [&](graph_node& n) {
    *out = reinterpret_cast<CUgraph>(std::get<child_work>(n.work).graph->handle);
  });
}
CUresult add_empty(OUTBOARD_PLACE) {
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_EMPTY, [](node_work&) { return CUDA_SUCCESS; });
}

template <CUgraphNodeType Type>
CUresult add_event(OUTBOARD_PLACE, CUevent event) {
  return add({out, graph, before, count}, Type, [&](node_work& w) { return make_event(event, w); });
}
template <CUgraphNodeType Type>
CUresult get_event(CUgraphNode handle, CUevent* out) {
  return read(handle, Type, out, [&](graph_node& n) { *out = std::get<event_work>(n.work).handle; });
}
template <CUgraphNodeType Type>
CUresult set_event(CUgraphNode handle, CUevent event) {
  return change(handle, Type, [&](node_work& w) { return make_event(event, w); });
}

// --- memory
CUresult add_allocation(OUTBOARD_PLACE, CUDA_MEM_ALLOC_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v1) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2));
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_MEM_ALLOC, [&](node_work& w) {
    CUDA_MEM_ALLOC_NODE_PARAMS_v2 wide{};
    std::memcpy(&wide, p, sizeof wide);
    const CUresult r = make_allocation(wide, w);
    if (r == CUDA_SUCCESS) p->dptr = wide.dptr;
    return r;
  });
}
CUresult get_allocation(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS_v1* p) {
  return read(handle, CU_GRAPH_NODE_TYPE_MEM_ALLOC, p, [&](graph_node& n) {
    auto& work = std::get<allocation_work>(n.work);
    work.about.accessDescs = work.access.data();
    std::memcpy(p, &work.about, sizeof *p);
  });
}
CUresult add_release(OUTBOARD_PLACE, CUdeviceptr address) {
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_MEM_FREE,
             [&](node_work& w) { return make_release(address, w); });
}
CUresult get_release(CUgraphNode handle, CUdeviceptr* out) {
  return read(handle, CU_GRAPH_NODE_TYPE_MEM_FREE, out,
              [&](graph_node& n) { *out = std::get<release_work>(n.work).address; });
}

CUresult add_operations(OUTBOARD_PLACE, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return add({out, graph, before, count}, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [&](node_work& w) {
    return make_memory_operations(p->ctx, p->paramArray, p->count, p->flags, w);
  });
}
CUresult get_operations(CUgraphNode handle, CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  return read(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, p, [&](graph_node& n) {
    auto& work = std::get<memory_operations_work>(n.work);
    *p = {reinterpret_cast<CUcontext>(work.owner->handle), static_cast<unsigned>(work.operations.size()),
          work.operations.data(), work.flags};
  });
}
CUresult set_operations(CUgraphNode handle, const CUDA_BATCH_MEM_OP_NODE_PARAMS_v1* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return change(handle, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, [&](node_work& w) {
    return make_memory_operations(p->ctx, p->paramArray, p->count, p->flags, w);
  });
}

// --- any kind
CUresult add_any_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* before, const CUgraphEdgeData* data,
                    std::size_t count, CUgraphNodeParams* p) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!plain_edges(data, count)) return CUDA_ERROR_NOT_SUPPORTED;
  return add(
      {out, graph, before, count}, p->type,
      [&](node_work& w) {
        const CUresult r = make_work(*p, w);
        if (r == CUDA_SUCCESS && p->type == CU_GRAPH_NODE_TYPE_GRAPH) {
          p->graph.graph = reinterpret_cast<CUgraph>(std::get<child_work>(w).graph->handle);
        }
        return r;
      },
      p->type == CU_GRAPH_NODE_TYPE_CONDITIONAL ? &p->conditional.phGraph_out : nullptr);
}
CUresult add_any(OUTBOARD_PLACE, CUgraphNodeParams* p) {
  return add_any_v2(out, graph, before, nullptr, count, p);
}
CUresult set_any(CUgraphNode handle, CUgraphNodeParams* p) {
  if (p == nullptr || p->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC || p->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
    return CUDA_ERROR_INVALID_VALUE;
  return change(handle, p->type, [&](node_work& w) { return make_work(*p, w); });
}

#undef OUTBOARD_PLACE

/// Handles are numbers that kernels carry; they die with their graph.
CUresult create_condition(CUgraphConditionalHandle* out, CUgraph handle, CUcontext context, unsigned initial,
                          unsigned flags) {
  if (out == nullptr || (flags & ~static_cast<unsigned>(CU_GRAPH_COND_ASSIGN_DEFAULT)) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  return with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(handle);
    context_ptr c;
    if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (const CUresult r = node_context(context, c); r != CUDA_SUCCESS) return r;
    auto made = std::make_shared<conditional_value>();
    made->initial = initial;
    made->assign_initial = flags == CU_GRAPH_COND_ASSIGN_DEFAULT;
    *out = here().next_id.fetch_add(1);
    std::erase_if(here().conditionals, [](const auto& entry) { return entry.second.expired(); });
    here().conditionals[*out] = made;
    return graph->conditions.push_back(std::move(made)), CUDA_SUCCESS;
  });
}

}  // namespace

void fill_graph_node_entries(api::driver_table& t) {
  t.cuGraphAddKernelNode = add_kernel;
  t.cuGraphAddKernelNode_v2 = add_kernel_v2;
  t.cuGraphKernelNodeGetParams = get_kernel;
  t.cuGraphKernelNodeGetParams_v2 = get_kernel_v2;
  t.cuGraphKernelNodeSetParams = set_kernel;
  t.cuGraphKernelNodeSetParams_v2 = set_kernel_v2;
  t.cuGraphKernelNodeGetAttribute = get_attribute;
  t.cuGraphKernelNodeSetAttribute = set_attribute;
  t.cuGraphKernelNodeCopyAttributes = copy_attributes;
  t.cuGraphAddMemcpyNode = add_copy;
  t.cuGraphMemcpyNodeGetParams = get_copy;
  t.cuGraphMemcpyNodeSetParams = set_copy;
  t.cuGraphAddMemsetNode = add_fill;
  t.cuGraphMemsetNodeGetParams = get_fill;
  t.cuGraphMemsetNodeSetParams = set_fill;
  t.cuGraphAddHostNode = add_host;
  t.cuGraphHostNodeGetParams = get_host;
  t.cuGraphHostNodeSetParams = set_host;
  t.cuGraphAddChildGraphNode = add_child;
  t.cuGraphChildGraphNodeGetGraph = get_child;
  t.cuGraphAddEmptyNode = add_empty;
  t.cuGraphAddEventRecordNode = add_event<CU_GRAPH_NODE_TYPE_EVENT_RECORD>;
  t.cuGraphEventRecordNodeGetEvent = get_event<CU_GRAPH_NODE_TYPE_EVENT_RECORD>;
  t.cuGraphEventRecordNodeSetEvent = set_event<CU_GRAPH_NODE_TYPE_EVENT_RECORD>;
  t.cuGraphAddEventWaitNode = add_event<CU_GRAPH_NODE_TYPE_WAIT_EVENT>;
  t.cuGraphEventWaitNodeGetEvent = get_event<CU_GRAPH_NODE_TYPE_WAIT_EVENT>;
  t.cuGraphEventWaitNodeSetEvent = set_event<CU_GRAPH_NODE_TYPE_WAIT_EVENT>;
  t.cuGraphAddMemAllocNode = add_allocation;
  t.cuGraphMemAllocNodeGetParams = get_allocation;
  t.cuGraphAddMemFreeNode = add_release;
  t.cuGraphMemFreeNodeGetParams = get_release;
  t.cuGraphAddBatchMemOpNode = add_operations;
  t.cuGraphBatchMemOpNodeGetParams = get_operations;
  t.cuGraphBatchMemOpNodeSetParams = set_operations;
  t.cuGraphAddNode = add_any;
  t.cuGraphAddNode_v2 = add_any_v2;
  t.cuGraphNodeSetParams = set_any;
  t.cuGraphConditionalHandleCreate = create_condition;
}

}  // namespace outboard::device::cpu
