#include "frontend/cuda/device_contexts.hh"

namespace outboard::frontend {

void device_contexts::adopt(marshal::snapshot snapshot) {
  facts_ = std::move(snapshot);
  for (std::size_t i = 0; i < facts_.devices.size(); ++i) {
    auto state = std::make_unique<context_state>();
    context_state* raw = state.get();
    raw->device = static_cast<std::int32_t>(i);
    raw->primary = true;
    raw->id = next_context_id();
    for (std::size_t l = 0; l < raw->limits.size(); ++l) raw->limits[l] = facts_.devices[i].limits[l];
    raw->handle = handles_[api::handle_kind::context].reserve(std::move(state));
    primaries_.push_back(raw);
  }
}

void device_contexts::abandon_connections() const {
  handles_[api::handle_kind::context].each(
      [](std::uint64_t, object& o) { static_cast<context_state&>(o).abandon_connections(); });
}

}  // namespace outboard::frontend
