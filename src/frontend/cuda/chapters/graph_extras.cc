// Chapter graph, what is left: attributes of kernel nodes, the printed form, user objects, conditional
// handles.
#include <fcntl.h>
#include <unistd.h>

#include "frontend/cuda/attribute.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/cuda/graph_nodes.hh"

namespace outboard::frontend::cuda {
namespace {

CUresult attribute(lane& own, CUgraphNode node, CUkernelNodeAttrID id, CUkernelNodeAttrValue* out,
                   const CUkernelNodeAttrValue* in) {
  if (!node_ok(node) || (!out && !in)) return CUDA_ERROR_INVALID_VALUE;
  marshal::attribute_body about;
  about.subject = value_of(node);
  about.id = static_cast<std::uint32_t>(id);
  return exchange_attribute(own, typed<api::opcode::cuGraphKernelNodeGetAttribute>, about, out, in);
}

bool write_file(const char* path, std::string_view text) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  while (!text.empty()) {
    const ssize_t n = ::write(file, text.data(), text.size());
    if (n <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return ::close(file) == 0 && text.empty();
}

/// References to a user object that the program holds; the object itself stays here, its destructor runs on
/// the callbacks' thread when the server says that nothing refers to it.
CUresult change_references(lane& own, like<api::opcode::cuUserObjectRetain> what, CUgraph graph,
                           CUuserObject object, unsigned count, unsigned flags) {
  if (!find_object<struct object>(own, object) || count == 0) return CUDA_ERROR_INVALID_VALUE;
  return call(what, own,
              marshal::user_object_body{
                  .object = value_of(object), .graph = value_of(graph), .count = count, .flags = flags});
}

}  // namespace

namespace ends {

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* value) {
  lane& own = this_lane();
  return attribute(own, node, id, value, nullptr);
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
  lane& own = this_lane();
  return attribute(own, node, id, nullptr, value);
}
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  lane& own = this_lane();
  if (!node_ok(to) || !node_ok(from)) return CUDA_ERROR_INVALID_VALUE;
  return call<api::opcode::cuGraphKernelNodeCopyAttributes>(
      own, marshal::nodes_body{.subject = value_of(to), .capacity = value_of(from)});
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned flags) {
  lane& own = this_lane();
  if (!path || !graph_ok(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  marshal::text_reply reply;
  if (const CUresult code = call<api::opcode::cuGraphDebugDotPrint>(
          own, marshal::nodes_body{.subject = value_of(graph), .capacity = flags}, reply);
      code != CUDA_SUCCESS)
    return code;
  return write_file(path, reply.text) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuUserObjectCreate(CUuserObject* out, void* data, CUhostFn destroy, unsigned count, unsigned flags) {
  lane& own = this_lane();
  if (!out || !destroy || !count || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  process& p = own.state();
  handle_table& table = p.handles[api::handle_kind::user_object];
  const std::uint64_t made = table.reserve(std::make_unique<object>());
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t id = p.functions.add(
      *p.connection.server(),
      [destroy, data, &table, made](std::int32_t) {
        table.release(made);
        destroy(data);
      },
      {}, true);
  // A thread must read the connection until the destructor has run.
  p.connection.server()->expect_callbacks(1);
  if (const CUresult code = call<api::opcode::cuUserObjectCreate>(
          own, marshal::user_object_body{.object = made, .id = id, .count = count, .flags = flags});
      code != CUDA_SUCCESS)
    return table.release(made), code;
  return *out = reinterpret_cast<CUuserObject>(made), CUDA_SUCCESS;
}
CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  lane& own = this_lane();
  return change_references(own, typed<api::opcode::cuUserObjectRetain>, nullptr, object, count, 0);
}
CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  if (!object || count == 0) return CUDA_ERROR_INVALID_VALUE;
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuUserObjectRelease>(own); code != CUDA_SUCCESS) return code;
  return change_references(own, typed<api::opcode::cuUserObjectRelease>, nullptr, object, count, 0);
}
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  lane& own = this_lane();
  if (!graph_ok(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  return change_references(own, typed<api::opcode::cuGraphRetainUserObject>, graph, object, count, flags);
}
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  lane& own = this_lane();
  if (!graph_ok(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  return change_references(own, typed<api::opcode::cuGraphReleaseUserObject>, graph, object, count, 0);
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* out, CUgraph graph, CUcontext context,
                                        unsigned value, unsigned flags) {
  lane& own = this_lane();
  if (!out || !graph_ok(own, graph)) return CUDA_ERROR_INVALID_VALUE;
  if (context && !own.state().devices.find_context(value_of(context))) return CUDA_ERROR_INVALID_CONTEXT;
  marshal::number_reply handle;
  const CUresult code = call<api::opcode::cuGraphConditionalHandleCreate>(
      own,
      marshal::user_object_body{
          .object = value_of(context), .graph = value_of(graph), .count = value, .flags = flags},
      handle);
  if (code == CUDA_SUCCESS) *out = static_cast<CUgraphConditionalHandle>(handle.value);
  return code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
