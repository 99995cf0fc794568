// Wrong calls of the chapter graph: executable graphs.
#include "graph_parts.hh"

namespace wrong_calls {

calls graph_exec_calls() {
  return {
      WRONG("cuGraphInstantiate.null", in_context, cuGraphInstantiate(nullptr, w.graph, 0)),
      WRONG("cuGraphInstantiate.null_graph", in_context, cuGraphInstantiate(&o.exec, nullptr, 0)),
      WRONG("cuGraphInstantiate.flags", in_context, cuGraphInstantiate(&o.exec, w.graph, 0x100)),
      WRONG("cuGraphInstantiate.device_launch_of_empty", in_context,
            cuGraphInstantiate(&o.exec, w.graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)),
      WRONG("cuGraphInstantiate.none", no_context, cuGraphInstantiate(&o.exec, w.graph, 0)),
      WRONG("cuGraphInstantiate.gone", alone, cuGraphInstantiate(&o.exec, graph_gone(), 0)),
      WRONG("cuGraphInstantiateWithParams.null", in_context,
            cuGraphInstantiateWithParams(&o.exec, w.graph, nullptr)),
      WRONG("cuGraphInstantiateWithParams.flags", in_context,
            [] {
              CUDA_GRAPH_INSTANTIATE_PARAMS p{};
              p.flags = 0x100;
              return cuGraphInstantiateWithParams(&o.exec, w.graph, &p);
            }()),
      WRONG("cuGraphExecGetFlags.null", in_context, cuGraphExecGetFlags(w.exec, nullptr)),
      WRONG("cuGraphExecGetFlags.null_exec", in_context,
            [] {
              cuuint64_t f;
              return cuGraphExecGetFlags(nullptr, &f);
            }()),
      WRONG("cuGraphExecDestroy.null", in_context, cuGraphExecDestroy(nullptr)),
      WRONG("cuGraphExecDestroy.twice", alone, cuGraphExecDestroy(exec_gone())),
      WRONG("cuGraphLaunch.null", in_context, cuGraphLaunch(nullptr, w.stream)),
      WRONG("cuGraphLaunch.gone", alone, cuGraphLaunch(exec_gone(), w.stream)),
      WRONG("cuGraphLaunch.none_default", no_context, cuGraphLaunch(w.exec, nullptr)),
      WRONG("cuGraphUpload.null", in_context, cuGraphUpload(nullptr, w.stream)),
      WRONG("cuGraphExecUpdate.null", in_context,
            [] {
              CUgraphExecUpdateResultInfo r;
              return cuGraphExecUpdate(nullptr, w.graph, &r);
            }()),
      WRONG("cuGraphExecUpdate.null_graph", in_context,
            [] {
              CUgraphExecUpdateResultInfo r;
              return cuGraphExecUpdate(w.exec, nullptr, &r);
            }()),
      WRONG("cuGraphExecUpdate.null_result", in_context, cuGraphExecUpdate(w.exec, w.graph, nullptr)),
      WRONG_DO("cuGraphExecUpdate.topology", in_context,
               {
                 CUgraph g = graph();
                 empty(g, empty(g));
                 CUgraphExecUpdateResultInfo r{};
                 const CUresult code = cuGraphExecUpdate(w.exec, g, &r);
                 return code * 1000 + r.result;
               }),
      WRONG_DO("cuGraphExecUpdate.node_type", in_context,
               {
                 CUgraph g = graph();
                 const auto p = fill();
                 NEED(cuGraphAddMemsetNode(&o.node, g, nullptr, 0, &p, w.context));
                 CUgraphExecUpdateResultInfo r{};
                 const CUresult code = cuGraphExecUpdate(w.exec, g, &r);
                 return code * 1000 + r.result;
               }),
      WRONG_DO("cuGraphExecUpdate.function", in_context,
               {
                 with_kernel before;
                 CUgraph g = graph();
                 CUDA_KERNEL_NODE_PARAMS p = kernel();
                 p.func = function_named("nothing"), p.kernelParams = nullptr;
                 NEED(cuGraphAddKernelNode(&o.node, g, nullptr, 0, &p));
                 CUgraphExecUpdateResultInfo r{};
                 const CUresult code = cuGraphExecUpdate(before.exec, g, &r);
                 return code * 1000 + r.result;
               }),
      WRONG("cuGraphExecKernelNodeSetParams.null", in_context,
            [] {
              with_kernel g;
              return cuGraphExecKernelNodeSetParams(g.exec, g.node, nullptr);
            }()),
      WRONG("cuGraphExecKernelNodeSetParams.other_node", in_context,
            [] {
              with_kernel g;
              return cuGraphExecKernelNodeSetParams(g.exec, w.node, &kernel());
            }()),
      WRONG("cuGraphExecKernelNodeSetParams.node_of_another", in_context,
            [] {
              with_kernel g, h;
              return cuGraphExecKernelNodeSetParams(g.exec, h.node, &kernel());
            }()),
      WRONG_DO("cuGraphExecKernelNodeSetParams.many_threads", in_context,
               {
                 with_kernel g;
                 CUDA_KERNEL_NODE_PARAMS p = kernel();
                 p.blockDimX = 2048;
                 return cuGraphExecKernelNodeSetParams(g.exec, g.node, &p);
               }),
      WRONG("cuGraphExecMemsetNodeSetParams.other_type", in_context,
            [] {
              with_kernel g;
              auto p = fill();
              return cuGraphExecMemsetNodeSetParams(g.exec, g.node, &p, w.context);
            }()),
      WRONG("cuGraphExecMemcpyNodeSetParams.other_type", in_context,
            [] {
              with_kernel g;
              auto p = copy();
              return cuGraphExecMemcpyNodeSetParams(g.exec, g.node, &p, w.context);
            }()),
      WRONG("cuGraphExecHostNodeSetParams.other_type", in_context,
            [] {
              with_kernel g;
              CUDA_HOST_NODE_PARAMS p{nothing, nullptr};
              return cuGraphExecHostNodeSetParams(g.exec, g.node, &p);
            }()),
      WRONG("cuGraphExecEventRecordNodeSetEvent.other_type", in_context,
            [] {
              with_kernel g;
              return cuGraphExecEventRecordNodeSetEvent(g.exec, g.node, w.event);
            }()),
      WRONG("cuGraphExecChildGraphNodeSetParams.other_type", in_context,
            [] {
              with_kernel g;
              return cuGraphExecChildGraphNodeSetParams(g.exec, g.node, w.graph);
            }()),
      WRONG("cuGraphNodeSetEnabled.null_exec", in_context, cuGraphNodeSetEnabled(nullptr, w.node, 1)),
      WRONG("cuGraphNodeSetEnabled.empty_node", in_context, cuGraphNodeSetEnabled(w.exec, w.node, 0)),
      WRONG("cuGraphNodeGetEnabled.null", in_context,
            [] {
              with_kernel g;
              return cuGraphNodeGetEnabled(g.exec, g.node, nullptr);
            }()),
      WRONG("cuGraphNodeGetEnabled.empty_node", in_context, cuGraphNodeGetEnabled(w.exec, w.node, &o.u)),
      WRONG("cuGraphExecNodeSetParams.other_type", in_context,
            [] {
              with_kernel g;
              CUgraphNodeParams p{};
              p.type = CU_GRAPH_NODE_TYPE_MEMSET;
              return cuGraphExecNodeSetParams(g.exec, g.node, &p);
            }()),
      WRONG_DO("cuGraphInstantiate.allocation_twice", in_context,
               {
                 CUgraph g = graph();
                 CUDA_MEM_ALLOC_NODE_PARAMS p{};
                 p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
                 p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE, p.poolProps.location.id = w.device;
                 p.bytesize = 4096;
                 NEED(cuGraphAddMemAllocNode(&o.node, g, nullptr, 0, &p));
                 exec_of(g);
                 return cuGraphInstantiate(&o.exec, g, 0);
               }),
      WRONG_DO("cuGraphLaunch.allocation_still_there", in_context,
               {
                 CUgraph g = graph();
                 CUDA_MEM_ALLOC_NODE_PARAMS p{};
                 p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
                 p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE, p.poolProps.location.id = w.device;
                 p.bytesize = 4096;
                 NEED(cuGraphAddMemAllocNode(&o.node, g, nullptr, 0, &p));
                 CUgraphExec e = exec_of(g);
                 NEED(cuGraphLaunch(e, w.stream));
                 const CUresult code = cuGraphLaunch(e, w.stream);
                 NEED(cuStreamSynchronize(w.stream));
                 NEED(cuMemFree(p.dptr));
                 return code;
               }),
      WRONG_DO("cuGraphAddMemFreeNode.twice", in_context,
               {
                 CUgraph g = graph();
                 CUDA_MEM_ALLOC_NODE_PARAMS p{};
                 p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
                 p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE, p.poolProps.location.id = w.device;
                 p.bytesize = 4096;
                 NEED(cuGraphAddMemAllocNode(&o.node, g, nullptr, 0, &p));
                 NEED(cuGraphAddMemFreeNode(&o.node2, g, &o.node, 1, p.dptr));
                 return cuGraphAddMemFreeNode(&o.node2, g, &o.node, 1, p.dptr);
               }),
      WRONG_DO("cuGraphClone.with_allocation", in_context,
               {
                 CUgraph g = graph();
                 CUDA_MEM_ALLOC_NODE_PARAMS p{};
                 p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
                 p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE, p.poolProps.location.id = w.device;
                 p.bytesize = 4096;
                 NEED(cuGraphAddMemAllocNode(&o.node, g, nullptr, 0, &p));
                 return cuGraphClone(&o.graph, g);
               }),
  };
}

}  // namespace wrong_calls
