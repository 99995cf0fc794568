// Chapter graph, what is left: attributes of kernel nodes, the printed form, user objects, conditional
// handles.
#include <fcntl.h>
#include <unistd.h>

#include "base/file_bytes.hh"
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
  return exchange_attribute(own, api::opcode::cuGraphKernelNodeGetAttribute, about, out, in);
}

bool write_file(const char* path, std::string_view text) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return false;
  const bool written = write_whole(file, text);
  return ::close(file) == 0 && written;
}

/// References to a user object that the program holds; the object itself stays here, its destructor runs on
/// the callbacks' thread when the server says that nothing refers to it.
CUresult change_references(lane& own, opcode_for<marshal::user_object_body> code, CUgraph graph,
                           CUuserObject object, unsigned count, unsigned flags) {
  if (!find_object<struct object>(object) || count == 0) return CUDA_ERROR_INVALID_VALUE;
  typed_request r(code, own, marshal::user_object_body{value_of(object), value_of(graph), 0, count, flags});
  return r.call();
}

}  // namespace

namespace ends {

#define OUTBOARD_GATE(symbol) \
  lane& own = this_lane();    \
  if (const CUresult refused = gate<api::opcode::symbol>(own); refused != CUDA_SUCCESS) return refused

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                       CUkernelNodeAttrValue* value) {
  OUTBOARD_GATE(cuGraphKernelNodeGetAttribute);
  return attribute(own, node, id, value, nullptr);
}
CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID id,
                                       const CUkernelNodeAttrValue* value) {
  OUTBOARD_GATE(cuGraphKernelNodeSetAttribute);
  return attribute(own, node, id, nullptr, value);
}
CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from) {
  OUTBOARD_GATE(cuGraphKernelNodeCopyAttributes);
  if (!node_ok(to) || !node_ok(from)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphKernelNodeCopyAttributes> r(
      own, marshal::nodes_body{value_of(to), value_of(from)});
  return r.call();
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char* path, unsigned flags) {
  OUTBOARD_GATE(cuGraphDebugDotPrint);
  if (!path || !graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  request_of<api::opcode::cuGraphDebugDotPrint> r(own, marshal::nodes_body{value_of(graph), flags});
  marshal::text_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  return write_file(path, reply.text) ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuUserObjectCreate(CUuserObject* out, void* data, CUhostFn destroy, unsigned count, unsigned flags) {
  OUTBOARD_GATE(cuUserObjectCreate);
  if (!out || !destroy || !count || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  process& p = process::instance();
  handle_table& table = p.objects().handles(api::handle_kind::user_object);
  const std::uint64_t made = table.reserve(std::make_unique<object>());
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::uint64_t id = p.functions().add(*p.server(), [destroy, data, &table, made](std::int32_t) {
    table.release(made);
    destroy(data);
  });
  // Until the destructor has run, somebody must listen for its time.
  p.server()->expect_callbacks(1);
  request_of<api::opcode::cuUserObjectCreate> r(own, marshal::user_object_body{made, 0, id, count, flags});
  if (const CUresult code = r.call(); code != CUDA_SUCCESS) return table.release(made), code;
  return *out = reinterpret_cast<CUuserObject>(made), CUDA_SUCCESS;
}
CUresult cuUserObjectRetain(CUuserObject object, unsigned count) {
  OUTBOARD_GATE(cuUserObjectRetain);
  return change_references(own, api::opcode::cuUserObjectRetain, nullptr, object, count, 0);
}
CUresult cuUserObjectRelease(CUuserObject object, unsigned count) {
  if (!object || count == 0) return CUDA_ERROR_INVALID_VALUE;  // even before cuInit
  OUTBOARD_GATE(cuUserObjectRelease);
  return change_references(own, api::opcode::cuUserObjectRelease, nullptr, object, count, 0);
}
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  OUTBOARD_GATE(cuGraphRetainUserObject);
  if (!graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  return change_references(own, api::opcode::cuGraphRetainUserObject, graph, object, count, flags);
}
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned count) {
  OUTBOARD_GATE(cuGraphReleaseUserObject);
  if (!graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  return change_references(own, api::opcode::cuGraphReleaseUserObject, graph, object, count, 0);
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle* out, CUgraph graph, CUcontext context,
                                        unsigned value, unsigned flags) {
  OUTBOARD_GATE(cuGraphConditionalHandleCreate);
  if (!out || !graph_ok(graph)) return CUDA_ERROR_INVALID_VALUE;
  if (context && !process::instance().objects().find_context(value_of(context)))
    return CUDA_ERROR_INVALID_CONTEXT;
  request_of<api::opcode::cuGraphConditionalHandleCreate> r(
      own, marshal::user_object_body{value_of(context), value_of(graph), 0, value, flags});
  marshal::number_reply handle;
  const CUresult code = r.call(handle);
  if (code == CUDA_SUCCESS) *out = static_cast<CUgraphConditionalHandle>(handle.value);
  return code;
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
