// The program's objects as the front-end keeps them: a table of handles for each kind, and the primary
// contexts, which live as long as the process. One, of the process state; any thread, but for what says
// otherwise.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "api/cuda/handles.hh"
#include "frontend/context.hh"
#include "frontend/handle_table.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::frontend {

class program_objects {
 public:
  program_objects();
  /// Makes the primary contexts of these devices, once, while the process connects.
  void adopt(const marshal::snapshot& facts);

  /// nullptr: no such device.
  context_state* primary(int device) const;
  context_state* find_context(std::uint64_t handle) const;
  handle_table& handles(api::handle_kind kind) { return *tables_[static_cast<std::size_t>(kind)]; }
  std::uint64_t next_context_id() { return ++last_context_id_; }

 private:
  std::array<std::unique_ptr<handle_table>, static_cast<std::size_t>(api::handle_kind::count)> tables_;
  std::vector<context_state*> primaries_;
  std::atomic<std::uint64_t> last_context_id_{0};
};

}  // namespace outboard::frontend
