#include "frontend/program_objects.hh"

namespace outboard::frontend {

program_objects::program_objects() {
  for (std::size_t k = 0; k < tables_.size(); ++k) {
    tables_[k] = std::make_unique<handle_table>(static_cast<api::handle_kind>(k));
  }
}

void program_objects::adopt(const marshal::snapshot& facts) {
  for (std::size_t i = 0; i < facts.devices.size(); ++i) {
    auto state = std::make_unique<context_state>();
    context_state* raw = state.get();
    raw->device = static_cast<std::int32_t>(i);
    raw->primary = true;
    raw->id = next_context_id();
    for (std::size_t l = 0; l < raw->limits.size(); ++l) raw->limits[l] = facts.devices[i].limits[l];
    raw->handle = handles(api::handle_kind::context).reserve(std::move(state));
    primaries_.push_back(raw);
  }
}

context_state* program_objects::primary(int device) const {
  return device >= 0 && static_cast<std::size_t>(device) < primaries_.size()
             ? primaries_[static_cast<std::size_t>(device)]
             : nullptr;
}

context_state* program_objects::find_context(std::uint64_t handle) const {
  return static_cast<context_state*>(
      tables_[static_cast<std::size_t>(api::handle_kind::context)]->find(handle));
}

}  // namespace outboard::frontend
