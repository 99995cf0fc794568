// The devices of the session, as the server's snapshot describes them, and the contexts on them: a primary
// one each, and those that the program has made. Part of the process's state. The snapshot is adopted once,
// before the first handle is given out; then any thread may read.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "frontend/cuda/context.hh"
#include "frontend/cuda/handle_tables.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::frontend {

/// 0 where the device has no such attribute; the server says how many it knows.
inline std::int32_t attribute_value(const marshal::device_facts& device, CUdevice_attribute attribute) {
  const auto i = static_cast<std::size_t>(attribute);
  return i < device.attributes.size() ? device.attributes[i].value : 0;
}

class device_contexts {
 public:
  explicit device_contexts(handle_tables& handles) : handles_(handles) {}

  void adopt(marshal::snapshot snapshot);

  const marshal::snapshot& facts() const { return facts_; }
  std::size_t count() const { return facts_.devices.size(); }
  /// `device` must be one that there is.
  const marshal::device_facts& facts_of(std::int32_t device) const {
    return facts_.devices[static_cast<std::size_t>(device)];
  }

  /// nullptr: no such device.
  context_state* primary(int device) const {
    return device >= 0 && static_cast<std::size_t>(device) < primaries_.size()
               ? primaries_[static_cast<std::size_t>(device)]
               : nullptr;
  }
  context_state* find_context(std::uint64_t handle) const {
    return static_cast<context_state*>(handles_[api::handle_kind::context].find(handle));
  }
  std::uint64_t next_context_id() { return ++last_context_id_; }

  /// A kernel has faulted: every later call in the context returns this code.
  void context_failed(std::uint64_t context, std::int32_t code) const {
    if (context_state* state = find_context(context)) state->sticky.store(code, std::memory_order_release);
  }
  /// The worker has gone: what any context copies next needs new connections.
  void abandon_connections() const;

 private:
  handle_tables& handles_;
  marshal::snapshot facts_;
  std::vector<context_state*> primaries_;
  std::atomic<std::uint64_t> last_context_id_{0};
};

}  // namespace outboard::frontend
