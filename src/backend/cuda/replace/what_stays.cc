// What keeps a CUDA session with its worker: docs/how-to/replace-workers.md has the table.
#include <array>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/graph/graph_handles.hh"
#include "backend/cuda/replace/parts.hh"

namespace outboard::backend {
namespace {

using api::handle_kind;

struct kept_kind_of_object {
  handle_kind kind;
  const char* what;
};

/// Objects with contents, or with ties to others, that nothing here carries over yet.
constexpr std::array objects_that_stay = std::to_array<kept_kind_of_object>({
    {handle_kind::array, "it has CUDA arrays"},
    {handle_kind::mipmapped_array, "it has CUDA arrays"},
    {handle_kind::texture_object, "it has textures"},
    {handle_kind::surface_object, "it has surfaces"},
    {handle_kind::texture_reference, "it has texture references"},
    {handle_kind::surface_reference, "it has surface references"},
    {handle_kind::link_state, "it links modules"},
    {handle_kind::user_object, "it has user objects"},
    {handle_kind::external_memory, "it has memory of other programs"},
    {handle_kind::external_semaphore, "it has semaphores of other programs"},
    {handle_kind::green_context, "it has green contexts"},
    {handle_kind::resource_descriptor, "it has green contexts"},
    {handle_kind::allocation, "it maps memory by itself (cuMemCreate)"},
});

std::string objects_stay(call& c) {
  for (const auto& [kind, what] : objects_that_stay) {
    if (!c.objects().ids(kind).empty()) return what;
  }
  if (c.objects().minted_besides(handle_kind::graph_node)) return "it has objects that the server has named";
  for (const std::uint64_t id : c.objects().ids(handle_kind::event)) {
    if (c.objects().at(id)->extra) return "it shares events with other programs";
  }
  return {};
}

std::string memory_stays(call& c) {
  cuda_session& s = c.session;
  if (!s.facts().own_addresses) return "its addresses are the device's own";
  for (const mapping& m : s.memory().all()) {
    if (m.imported) return "it uses memory of other programs";
    if (m.memory == 0) return "it has memory that the driver has placed";
  }
  if (s.memory().has_offers() || !s.lasting_offers().empty()) return "it shares memory with other programs";
  if (!s.memory().all_pooled().empty()) return "it has memory of a pool (cuMemAllocAsync)";
  if (!s.virtual_memory().records().empty() || s.virtual_memory().host_bytes() != 0)
    return "it maps memory by itself (cuMemMap)";
  if (s.mirrors().has_variables()) return "it has managed variables";
  for (const mirrored& m : s.mirrors().all())
    return m.kind == marshal::host_block::managed ? "it has managed memory"
                                                  : "it has registered or mapped host memory";
  return {};
}

std::string graphs_stay(call& c) {
  for (const std::uint64_t id : c.objects().ids(handle_kind::graph_exec)) {
    const exec_needs* const needs = needs_of(c, id);
    if (needs && !needs->fed.empty()) return "a launch of a graph is on its way";
  }
  return c.session.limits().graphs_have_memory() ? "it has graphs that allocate memory" : "";
}

/// A recorded event knows a time, which another worker could not.
std::string times_stay(call& c) {
  const api::driver_table& d = c.driver();
  for (const std::uint64_t id : c.objects().ids(handle_kind::event)) {
    const server_object& object = *c.objects().at(id);
    auto* const event = static_cast<CUevent>(object.native);
    float none = 0;
    if (c.session.enter_context(c.own, object.records.front().context) != CUDA_SUCCESS) continue;
    // One that has no time, or was never recorded, is not valid here; one that is under way is not ready.
    if (call_driver(d.cuEventElapsedTime, &none, event, event) != CUDA_ERROR_INVALID_HANDLE)
      return "it has recorded events that measure time";
  }
  return {};
}

}  // namespace

std::string what_stays(call& c) {
  if (c.session.has_failed()) return "a context of it has failed";
  if (c.session.captures().any()) return "a capture is open";
  if (const char* const why = c.session.why_kept_here()) return why;
  if (c.session.dumps().expected()) return "it waits for dumps of its faults";
  bool modes = false;
  c.core.each_lane([&](const lane& each) {
    modes = modes || static_cast<const cuda_lane&>(each).capture_mode != CU_STREAM_CAPTURE_MODE_GLOBAL;
  });
  if (modes) return "a thread of it captures in another mode";
  std::string why = objects_stay(c);
  if (why.empty()) why = graphs_stay(c);
  if (why.empty()) why = memory_stays(c);
  if (why.empty()) why = times_stay(c);
  return why;
}

}  // namespace outboard::backend
