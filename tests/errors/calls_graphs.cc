// Wrong calls of the chapter graph: graphs and their structure, nodes, user objects.
#include "graph_parts.hh"

namespace wrong_calls {

calls graph_calls() {
  return {
      WRONG("cuGraphCreate.null", in_context, cuGraphCreate(nullptr, 0)),
      WRONG("cuGraphCreate.flags", in_context, cuGraphCreate(&o.graph, 1)),
      WRONG("cuGraphDestroy.null", in_context, cuGraphDestroy(nullptr)),
      WRONG("cuGraphDestroy.twice", alone, cuGraphDestroy(graph_gone())),
      WRONG("cuGraphClone.null", in_context, cuGraphClone(nullptr, w.graph)),
      WRONG("cuGraphClone.null_graph", in_context, cuGraphClone(&o.graph, nullptr)),
      WRONG("cuGraphClone.gone", alone, cuGraphClone(&o.graph, graph_gone())),
      WRONG("cuGraphGetNodes.null_count", in_context, cuGraphGetNodes(w.graph, nullptr, nullptr)),
      WRONG("cuGraphGetNodes.null_graph", in_context, cuGraphGetNodes(nullptr, nullptr, &o.n)),
      WRONG("cuGraphGetNodes.gone", alone, cuGraphGetNodes(graph_gone(), nullptr, &o.n)),
      WRONG("cuGraphGetRootNodes.null_graph", in_context, cuGraphGetRootNodes(nullptr, nullptr, &o.n)),
      WRONG("cuGraphGetRootNodes.null_count", in_context, cuGraphGetRootNodes(w.graph, nullptr, nullptr)),
      WRONG("cuGraphGetEdges.null_graph", in_context,
            cuGraphGetEdges(nullptr, nullptr, nullptr, nullptr, &o.n)),
      WRONG("cuGraphGetEdges.null_count", in_context,
            cuGraphGetEdges(w.graph, nullptr, nullptr, nullptr, nullptr)),
      WRONG_DO("cuGraphGetEdges.one_side", in_context,
               {
                 CUgraph g = graph();
                 empty(g, empty(g));
                 o.n = 1;
                 return cuGraphGetEdges(g, &o.node, nullptr, nullptr, &o.n);
               }),
      WRONG("cuGraphNodeGetType.null", in_context, cuGraphNodeGetType(w.node, nullptr)),
      WRONG("cuGraphNodeGetType.null_node", in_context,
            [] {
              CUgraphNodeType t;
              return cuGraphNodeGetType(nullptr, &t);
            }()),
      WRONG("cuGraphNodeGetDependencies.null_node", in_context,
            cuGraphNodeGetDependencies(nullptr, nullptr, nullptr, &o.n)),
      WRONG("cuGraphNodeGetDependencies.null_count", in_context,
            cuGraphNodeGetDependencies(w.node, nullptr, nullptr, nullptr)),
      WRONG("cuGraphNodeGetDependentNodes.null_node", in_context,
            cuGraphNodeGetDependentNodes(nullptr, nullptr, nullptr, &o.n)),
      WRONG("cuGraphNodeFindInClone.not_a_clone", in_context,
            cuGraphNodeFindInClone(&o.node, w.node, graph())),
      WRONG("cuGraphNodeFindInClone.null", in_context, cuGraphNodeFindInClone(nullptr, w.node, w.graph)),
      WRONG("cuGraphNodeFindInClone.null_node", in_context,
            cuGraphNodeFindInClone(&o.node, nullptr, w.graph)),
      WRONG("cuGraphAddDependencies.null_graph", in_context,
            cuGraphAddDependencies(nullptr, &w.node, &w.node, nullptr, 1)),
      WRONG("cuGraphAddDependencies.nulls", in_context,
            cuGraphAddDependencies(w.graph, nullptr, nullptr, nullptr, 1)),
      WRONG_DO("cuGraphAddDependencies.itself", in_context,
               {
                 CUgraph g = graph();
                 CUgraphNode a = empty(g);
                 return cuGraphAddDependencies(g, &a, &a, nullptr, 1);
               }),
      WRONG_DO("cuGraphAddDependencies.cycle", in_context,
               {
                 CUgraph g = graph();
                 CUgraphNode a = empty(g), b = empty(g, a);
                 return cuGraphAddDependencies(g, &b, &a, nullptr, 1);
               }),
      WRONG_DO("cuGraphInstantiate.cycle", in_context,
               {
                 CUgraph g = graph();
                 CUgraphNode a = empty(g), b = empty(g, a);
                 cuGraphAddDependencies(g, &b, &a, nullptr, 1);
                 return cuGraphInstantiate(&o.exec, g, 0);
               }),
      WRONG_DO("cuGraphAddDependencies.twice", in_context,
               {
                 CUgraph g = graph();
                 CUgraphNode a = empty(g), b = empty(g, a);
                 return cuGraphAddDependencies(g, &a, &b, nullptr, 1);
               }),
      WRONG_DO("cuGraphAddDependencies.other_graph", in_context,
               {
                 CUgraph g = graph();
                 CUgraphNode a = empty(g), b = empty(graph());
                 return cuGraphAddDependencies(g, &a, &b, nullptr, 1);
               }),
      WRONG_DO("cuGraphRemoveDependencies.none", in_context,
               {
                 CUgraph g = graph();
                 CUgraphNode a = empty(g), b = empty(g);
                 return cuGraphRemoveDependencies(g, &a, &b, nullptr, 1);
               }),
      WRONG("cuGraphRemoveDependencies.null_graph", in_context,
            cuGraphRemoveDependencies(nullptr, &w.node, &w.node, nullptr, 1)),
      WRONG("cuGraphDestroyNode.null", in_context, cuGraphDestroyNode(nullptr)),
      WRONG_DO("cuGraphDestroyNode.twice", alone,
               {
                 CUgraphNode n = empty(graph());
                 NEED(cuGraphDestroyNode(n));
                 return cuGraphDestroyNode(n);
               }),
      WRONG_DO("cuGraphDestroyNode.of_an_allocation", in_context,
               {
                 NEED(add_allocation([](auto&) {}));
                 return cuGraphDestroyNode(o.node);
               }),
      WRONG("cuGraphDebugDotPrint.null_graph", in_context, cuGraphDebugDotPrint(nullptr, "/dev/null", 0)),
      WRONG("cuGraphDebugDotPrint.null_path", in_context, cuGraphDebugDotPrint(w.graph, nullptr, 0)),
      WRONG("cuGraphDebugDotPrint.no_folder", in_context,
            cuGraphDebugDotPrint(w.graph, "/no/such/folder/x.dot", 0)),
      WRONG("cuUserObjectCreate.null", in_context,
            cuUserObjectCreate(nullptr, host, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)),
      WRONG("cuUserObjectCreate.no_function", in_context,
            cuUserObjectCreate(&o.object, host, nullptr, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)),
      WRONG("cuUserObjectCreate.no_flag", in_context, cuUserObjectCreate(&o.object, host, nothing, 1, 0)),
      WRONG("cuUserObjectCreate.no_references", in_context,
            cuUserObjectCreate(&o.object, host, nothing, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)),
      WRONG("cuUserObjectCreate.many_references", in_context,
            cuUserObjectCreate(&o.object, host, nothing, 0x80000000u, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)),
      WRONG("cuUserObjectRetain.null", in_context, cuUserObjectRetain(nullptr, 1)),
      WRONG("cuUserObjectRelease.null", in_context, cuUserObjectRelease(nullptr, 1)),
      WRONG_DO("cuUserObjectRetain.none", in_context,
               {
                 NEED(cuUserObjectCreate(&o.object, host, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
                 return cuUserObjectRetain(o.object, 0);
               }),
      WRONG_DO("cuUserObjectRelease.too_many", alone,
               {
                 NEED(cuUserObjectCreate(&o.object, host, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
                 return cuUserObjectRelease(o.object, 2);
               }),
      WRONG("cuGraphRetainUserObject.null", in_context, cuGraphRetainUserObject(w.graph, nullptr, 1, 0)),
      WRONG_DO("cuGraphRetainUserObject.flags", in_context,
               {
                 NEED(cuUserObjectCreate(&o.object, host, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
                 return cuGraphRetainUserObject(w.graph, o.object, 1, 8);
               }),
      WRONG_DO("cuGraphReleaseUserObject.not_retained", in_context,
               {
                 NEED(cuUserObjectCreate(&o.object, host, nothing, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
                 return cuGraphReleaseUserObject(graph(), o.object, 1);
               }),
  };
}

calls graph_node_calls() {
  return {
      WRONG("cuGraphAddKernelNode.null", in_context,
            cuGraphAddKernelNode(nullptr, graph(), nullptr, 0, &kernel())),
      WRONG("cuGraphAddKernelNode.null_graph", in_context,
            cuGraphAddKernelNode(&o.node, nullptr, nullptr, 0, &kernel())),
      WRONG("cuGraphAddKernelNode.null_parameters", in_context,
            cuGraphAddKernelNode(&o.node, graph(), nullptr, 0, nullptr)),
      WRONG("cuGraphAddKernelNode.null_dependencies", in_context,
            cuGraphAddKernelNode(&o.node, graph(), nullptr, 1, &kernel())),
      WRONG("cuGraphAddKernelNode.graph_gone", alone,
            cuGraphAddKernelNode(&o.node, graph_gone(), nullptr, 0, &kernel())),
      WRONG("cuGraphAddKernelNode.dependency_elsewhere", in_context,
            cuGraphAddKernelNode(&o.node, graph(), &w.node, 1, &kernel())),
      WRONG_DO("cuGraphAddKernelNode.null_dependency", in_context,
               {
                 CUgraphNode none = nullptr;
                 return cuGraphAddKernelNode(&o.node, graph(), &none, 1, &kernel());
               }),
      WRONG_DO("cuGraphAddKernelNode.dependency_twice", in_context,
               {
                 CUgraph g = graph();
                 CUgraphNode a = empty(g);
                 CUgraphNode both[] = {a, a};
                 return cuGraphAddKernelNode(&o.node, g, both, 2, &kernel());
               }),
      WRONG("cuGraphAddKernelNode.no_function", in_context, add_kernel([](auto& p) { p.func = nullptr; })),
      WRONG("cuGraphAddKernelNode.no_threads", in_context, add_kernel([](auto& p) { p.blockDimX = 0; })),
      WRONG("cuGraphAddKernelNode.many_threads", in_context, add_kernel([](auto& p) { p.blockDimX = 2048; })),
      WRONG("cuGraphAddKernelNode.no_blocks", in_context, add_kernel([](auto& p) { p.gridDimY = 0; })),
      WRONG("cuGraphAddKernelNode.many_blocks", in_context, add_kernel([](auto& p) { p.gridDimY = 70000; })),
      WRONG("cuGraphAddKernelNode.shared", in_context,
            add_kernel([](auto& p) { p.sharedMemBytes = 1 << 20; })),
      WRONG("cuGraphAddKernelNode.no_kernel_parameters", in_context,
            add_kernel([](auto& p) { p.kernelParams = nullptr; })),
      WRONG("cuGraphKernelNodeGetParams.null", in_context,
            cuGraphKernelNodeGetParams(with_kernel().node, nullptr)),
      WRONG("cuGraphKernelNodeGetParams.other_type", in_context,
            [] {
              CUDA_KERNEL_NODE_PARAMS p;
              return cuGraphKernelNodeGetParams(w.node, &p);
            }()),
      WRONG("cuGraphKernelNodeGetParams.null_node", in_context,
            [] {
              CUDA_KERNEL_NODE_PARAMS p;
              return cuGraphKernelNodeGetParams(nullptr, &p);
            }()),
      WRONG("cuGraphKernelNodeSetParams.other_type", in_context,
            cuGraphKernelNodeSetParams(w.node, &kernel())),
      WRONG("cuGraphKernelNodeSetParams.null", in_context,
            cuGraphKernelNodeSetParams(with_kernel().node, nullptr)),
      WRONG_DO("cuGraphKernelNodeSetParams.many_threads", in_context,
               {
                 with_kernel g(false);
                 CUDA_KERNEL_NODE_PARAMS p = kernel();
                 p.blockDimX = 2048;
                 return cuGraphKernelNodeSetParams(g.node, &p);
               }),
      WRONG("cuGraphKernelNodeCopyAttributes.other_type", in_context,
            cuGraphKernelNodeCopyAttributes(with_kernel().node, w.node)),
      WRONG("cuGraphKernelNodeGetAttribute.unknown", in_context,
            [] {
              CUkernelNodeAttrValue v;
              return cuGraphKernelNodeGetAttribute(with_kernel().node, static_cast<CUkernelNodeAttrID>(99),
                                                   &v);
            }()),
      WRONG("cuGraphKernelNodeGetAttribute.null", in_context,
            cuGraphKernelNodeGetAttribute(with_kernel().node, CU_LAUNCH_ATTRIBUTE_PRIORITY, nullptr)),
      WRONG("cuGraphKernelNodeSetAttribute.unknown", in_context,
            [] {
              CUkernelNodeAttrValue v{};
              return cuGraphKernelNodeSetAttribute(with_kernel().node, static_cast<CUkernelNodeAttrID>(99),
                                                   &v);
            }()),
      WRONG("cuGraphKernelNodeSetAttribute.other_type", in_context,
            [] {
              CUkernelNodeAttrValue v{};
              return cuGraphKernelNodeSetAttribute(w.node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v);
            }()),
      WRONG("cuGraphAddMemsetNode.null", in_context,
            cuGraphAddMemsetNode(&o.node, graph(), nullptr, 0, nullptr, w.context)),
      WRONG("cuGraphAddMemsetNode.null_context", in_context,
            [] {
              auto p = fill();
              return cuGraphAddMemsetNode(&o.node, graph(), nullptr, 0, &p, nullptr);
            }()),
      WRONG("cuGraphAddMemsetNode.element", in_context, add_fill([](auto& p) { p.elementSize = 3; })),
      WRONG("cuGraphAddMemsetNode.element_zero", in_context, add_fill([](auto& p) { p.elementSize = 0; })),
      WRONG("cuGraphAddMemsetNode.nowhere", in_context,
            add_fill([](auto& p) { p.dst = 0x6'0000'0000'0000ull; })),
      WRONG("cuGraphAddMemsetNode.null_target", in_context, add_fill([](auto& p) { p.dst = 0; })),
      WRONG("cuGraphAddMemsetNode.unaligned", in_context, add_fill([](auto& p) { p.dst += 1; })),
      WRONG("cuGraphAddMemsetNode.no_width", in_context, add_fill([](auto& p) { p.width = 0; })),
      WRONG("cuGraphAddMemsetNode.no_height", in_context, add_fill([](auto& p) { p.height = 0; })),
      WRONG("cuGraphAddMemsetNode.pitch", in_context, add_fill([](auto& p) { p.height = 4, p.pitch = 16; })),
      WRONG("cuGraphAddMemsetNode.value", in_context,
            add_fill([](auto& p) { p.elementSize = 1, p.value = 0x1234; })),
      WRONG("cuGraphMemsetNodeGetParams.other_type", in_context,
            [] {
              CUDA_MEMSET_NODE_PARAMS p;
              return cuGraphMemsetNodeGetParams(w.node, &p);
            }()),
      WRONG("cuGraphMemsetNodeSetParams.other_type", in_context,
            [] {
              auto p = fill();
              return cuGraphMemsetNodeSetParams(w.node, &p);
            }()),
      WRONG("cuGraphAddMemcpyNode.null", in_context,
            cuGraphAddMemcpyNode(&o.node, graph(), nullptr, 0, nullptr, w.context)),
      WRONG("cuGraphAddMemcpyNode.null_context", in_context,
            [] {
              auto p = copy();
              return cuGraphAddMemcpyNode(&o.node, graph(), nullptr, 0, &p, nullptr);
            }()),
      WRONG("cuGraphAddMemcpyNode.nowhere", in_context,
            add_copy([](auto& p) { p.dstDevice = 0x6'0000'0000'0000ull; })),
      WRONG("cuGraphAddMemcpyNode.null_source", in_context, add_copy([](auto& p) { p.srcDevice = 0; })),
      WRONG("cuGraphAddMemcpyNode.source_type", in_context,
            add_copy([](auto& p) { p.srcMemoryType = static_cast<CUmemorytype>(9); })),
      WRONG("cuGraphAddMemcpyNode.no_width", in_context, add_copy([](auto& p) { p.WidthInBytes = 0; })),
      WRONG("cuGraphAddMemcpyNode.pitch", in_context,
            add_copy([](auto& p) { p.Height = 4, p.srcPitch = 32; })),
      WRONG("cuGraphMemcpyNodeGetParams.other_type", in_context,
            [] {
              CUDA_MEMCPY3D p;
              return cuGraphMemcpyNodeGetParams(w.node, &p);
            }()),
      WRONG("cuGraphAddHostNode.null", in_context, cuGraphAddHostNode(&o.node, graph(), nullptr, 0, nullptr)),
      WRONG("cuGraphAddHostNode.no_function", in_context,
            [] {
              CUDA_HOST_NODE_PARAMS p{};
              return cuGraphAddHostNode(&o.node, graph(), nullptr, 0, &p);
            }()),
      WRONG("cuGraphHostNodeGetParams.other_type", in_context,
            [] {
              CUDA_HOST_NODE_PARAMS p;
              return cuGraphHostNodeGetParams(w.node, &p);
            }()),
      WRONG("cuGraphAddChildGraphNode.null_child", in_context,
            cuGraphAddChildGraphNode(&o.node, graph(), nullptr, 0, nullptr)),
      WRONG("cuGraphAddChildGraphNode.itself", in_context,
            [] {
              CUgraph g = graph();
              return cuGraphAddChildGraphNode(&o.node, g, nullptr, 0, g);
            }()),
      WRONG("cuGraphChildGraphNodeGetGraph.other_type", in_context,
            cuGraphChildGraphNodeGetGraph(w.node, &o.graph)),
      WRONG("cuGraphAddEmptyNode.null", in_context, cuGraphAddEmptyNode(nullptr, graph(), nullptr, 0)),
      WRONG("cuGraphAddEmptyNode.null_graph", in_context, cuGraphAddEmptyNode(&o.node, nullptr, nullptr, 0)),
      WRONG("cuGraphAddEventRecordNode.null_event", in_context,
            cuGraphAddEventRecordNode(&o.node, graph(), nullptr, 0, nullptr)),
      WRONG("cuGraphAddEventWaitNode.null_event", in_context,
            cuGraphAddEventWaitNode(&o.node, graph(), nullptr, 0, nullptr)),
      WRONG("cuGraphEventRecordNodeGetEvent.other_type", in_context,
            cuGraphEventRecordNodeGetEvent(w.node, &o.event)),
      WRONG("cuGraphEventWaitNodeSetEvent.other_type", in_context,
            cuGraphEventWaitNodeSetEvent(w.node, w.event)),
      WRONG("cuGraphAddBatchMemOpNode.null", in_context,
            cuGraphAddBatchMemOpNode(&o.node, graph(), nullptr, 0, nullptr)),
      WRONG("cuGraphAddMemAllocNode.null", in_context,
            cuGraphAddMemAllocNode(&o.node, graph(), nullptr, 0, nullptr)),
      WRONG("cuGraphAddMemAllocNode.zero", in_context, add_allocation([](auto& p) { p.bytesize = 0; })),
      WRONG("cuGraphAddMemAllocNode.device", in_context,
            add_allocation([](auto& p) { p.poolProps.location.id = 99; })),
      WRONG("cuGraphAddMemAllocNode.handle_type", in_context, add_allocation([](auto& p) {
              p.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
            })),
      WRONG("cuGraphAddMemAllocNode.null_access", in_context,
            add_allocation([](auto& p) { p.accessDescCount = 1; })),
      WRONG("cuGraphAddMemFreeNode.null", in_context, cuGraphAddMemFreeNode(&o.node, graph(), nullptr, 0, 0)),
      WRONG("cuGraphAddMemFreeNode.of_cuMemAlloc", in_context,
            cuGraphAddMemFreeNode(&o.node, graph(), nullptr, 0, w.memory)),
      WRONG("cuGraphMemAllocNodeGetParams.other_type", in_context,
            [] {
              CUDA_MEM_ALLOC_NODE_PARAMS p;
              return cuGraphMemAllocNodeGetParams(w.node, &p);
            }()),
      WRONG("cuDeviceGraphMemTrim.device", in_context, cuDeviceGraphMemTrim(99)),
      WRONG("cuDeviceGetGraphMemAttribute.unknown", in_context,
            cuDeviceGetGraphMemAttribute(w.device, static_cast<CUgraphMem_attribute>(99), &o.l)),
      WRONG("cuDeviceGetGraphMemAttribute.null", in_context,
            cuDeviceGetGraphMemAttribute(w.device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, nullptr)),
      WRONG("cuDeviceSetGraphMemAttribute.read_only", in_context,
            cuDeviceSetGraphMemAttribute(w.device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &o.l)),
      WRONG("cuGraphAddNode.null", in_context,
            cuGraphAddNode(&o.node, graph(), nullptr, nullptr, 0, nullptr)),
      WRONG("cuGraphAddNode.type", in_context, add_node(static_cast<CUgraphNodeType>(99), [](auto&) {})),
      WRONG("cuGraphAddNode.reserved", in_context,
            add_node(CU_GRAPH_NODE_TYPE_EMPTY, [](auto& p) { p.reserved0[1] = 5; })),
      WRONG("cuGraphAddNode.kernel_without_function", in_context,
            add_node(CU_GRAPH_NODE_TYPE_KERNEL, [](auto&) {})),
      WRONG("cuGraphAddNode.conditional_without_handle", in_context,
            add_node(CU_GRAPH_NODE_TYPE_CONDITIONAL,
                     [](auto& p) {
                       p.conditional.type = CU_GRAPH_COND_TYPE_IF, p.conditional.size = 1,
                       p.conditional.ctx = w.context;
                     })),
      WRONG_DO("cuGraphAddNode.conditional_of_another_graph", in_context,
               {
                 CUgraphConditionalHandle handle = 0;
                 NEED(cuGraphConditionalHandleCreate(&handle, graph(), w.context, 0, 0));
                 return add_node(CU_GRAPH_NODE_TYPE_CONDITIONAL, [&](auto& p) {
                   p.conditional.handle = handle, p.conditional.type = CU_GRAPH_COND_TYPE_IF;
                   p.conditional.size = 1, p.conditional.ctx = w.context;
                 });
               }),
      WRONG("cuGraphConditionalHandleCreate.null", in_context,
            cuGraphConditionalHandleCreate(nullptr, graph(), w.context, 0, 0)),
      WRONG("cuGraphConditionalHandleCreate.null_graph", in_context,
            [] {
              CUgraphConditionalHandle h;
              return cuGraphConditionalHandleCreate(&h, nullptr, w.context, 0, 0);
            }()),
      WRONG("cuGraphConditionalHandleCreate.flags", in_context,
            [] {
              CUgraphConditionalHandle h;
              return cuGraphConditionalHandleCreate(&h, graph(), w.context, 0, 8);
            }()),
      WRONG("cuGraphNodeSetParams.other_type", in_context,
            [] {
              CUgraphNodeParams p{};
              p.type = CU_GRAPH_NODE_TYPE_KERNEL;
              return cuGraphNodeSetParams(w.node, &p);
            }()),
      WRONG("cuGraphNodeSetParams.null", in_context, cuGraphNodeSetParams(w.node, nullptr)),
      WRONG("cuGraphAddExternalSemaphoresSignalNode.null", in_context,
            cuGraphAddExternalSemaphoresSignalNode(&o.node, graph(), nullptr, 0, nullptr)),
  };
}

}  // namespace wrong_calls
