// Entries of the chapter graph about user objects: the program's data that live as long as graphs refer to
// them.
#include <algorithm>

#include "device/cpu/graph/graph_handles.hh"

namespace outboard::device::cpu {
namespace {

constexpr unsigned most_references = ~0u;

std::shared_ptr<user_reference> find(CUuserObject handle) { return here().user_objects.find(number(handle)); }

/// Destructors run without the lock: they may take their time.
CUresult drop(CUuserObject handle, unsigned count) {
  user_object_ptr dying;
  return after_init([&]() -> CUresult {
    const std::lock_guard lock(here().graphs_mutex);
    const auto reference = find(handle);
    if (reference == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    reference->count -= std::min(count, reference->count);  // as a driver: more than there are is all
    if (reference->count == 0) dying = std::move(reference->held);
    return CUDA_SUCCESS;
  });
}

CUresult create(CUuserObject* out, void* data, CUhostFn destroy, unsigned count, unsigned flags) {
  if (out == nullptr || destroy == nullptr || count == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return with_graphs([&] {
    auto object = std::make_shared<user_object>();
    object->data = data;
    object->destroy = destroy;
    auto reference = std::make_shared<user_reference>();
    reference->object = reference->held = object;
    reference->count = count;
    object->handle = here().user_objects.insert(std::move(reference));
    return *out = reinterpret_cast<CUuserObject>(object->handle), CUDA_SUCCESS;
  });
}

CUresult retain(CUuserObject handle, unsigned count) {
  return with_graphs([&]() -> CUresult {
    const auto reference = find(handle);
    if (reference == nullptr || count == 0 || count > most_references - reference->count) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (reference->count == 0) reference->held = reference->object.lock();
    return reference->count += count, CUDA_SUCCESS;
  });
}

CUresult release(CUuserObject handle, unsigned count) { return drop(handle, count); }

CUresult graph_retain(CUgraph graph_handle, CUuserObject handle, unsigned count, unsigned flags) {
  const bool move = flags == CU_GRAPH_USER_OBJECT_MOVE;
  const CUresult taken = with_graphs([&]() -> CUresult {
    const graph_ptr graph = find_graph(graph_handle);
    const auto reference = find(handle);
    if (graph == nullptr || reference == nullptr || count == 0 || (flags != 0 && !move)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (move && count > reference->count) return CUDA_ERROR_INVALID_VALUE;
    return graph->objects[reference->object.lock()] += count, CUDA_SUCCESS;
  });
  return taken == CUDA_SUCCESS && move ? drop(handle, count) : taken;
}

CUresult graph_release(CUgraph graph_handle, CUuserObject handle, unsigned count) {
  user_object_ptr dying;
  return after_init([&]() -> CUresult {
    const std::lock_guard lock(here().graphs_mutex);
    const graph_ptr graph = find_graph(graph_handle);
    const auto reference = find(handle);
    if (graph == nullptr || reference == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
    const auto held = graph->objects.find(reference->object.lock());
    if (held == graph->objects.end()) return CUDA_SUCCESS;  // as a driver says of what it never had
    held->second -= std::min(count, held->second);
    if (held->second == 0) {
      dying = held->first;
      graph->objects.erase(held);
    }
    return CUDA_SUCCESS;
  });
}

}  // namespace

void fill_user_object_entries(api::driver_table& t) {
  t.cuUserObjectCreate = create;
  t.cuUserObjectRetain = retain;
  t.cuUserObjectRelease = release;
  t.cuGraphRetainUserObject = graph_retain;
  t.cuGraphReleaseUserObject = graph_release;
}

}  // namespace outboard::device::cpu
