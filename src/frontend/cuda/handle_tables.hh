// The tables of all handles that the program has, one a kind (frontend/handle_table.hh). Part of the
// process's state; any thread.
#pragma once

#include <array>
#include <memory>

#include "api/handles.hh"
#include "frontend/handle_table.hh"

namespace outboard::frontend {

class handle_tables {
 public:
  handle_tables() {
    for (std::size_t k = 0; k < tables_.size(); ++k)
      tables_[k] = std::make_unique<handle_table>(static_cast<api::handle_kind>(k));
  }
  handle_table& operator[](api::handle_kind kind) const { return *tables_[static_cast<std::size_t>(kind)]; }

 private:
  std::array<std::unique_ptr<handle_table>, static_cast<std::size_t>(api::handle_kind::count)> tables_;
};

}  // namespace outboard::frontend
