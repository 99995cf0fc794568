// Allocations from their begin to their end, as the kind that has one record for each allocation shows them.
// One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/cupti/records.hh"

namespace outboard::frontend::cupti {

/// Times of the steady clock; end 0: it was never released.
struct memory_life {
  shown_memory allocation;
  std::int64_t begin = 0, end = 0;
};

class memory_lives {
 public:
  /// A call has allocated or released. Returns a life if one is over; if the memory was allocated before
  /// lives were recorded, its begin is not known.
  std::optional<memory_life> note(std::int64_t at, const shown_memory& memory) {
    if (!memory.release) {
      open_.insert_or_assign(memory.block.base, memory_life{memory, at, 0});
      return std::nullopt;
    }
    auto known = open_.extract(memory.block.base);
    if (!known) return std::nullopt;
    known.mapped().end = at;
    return std::move(known.mapped());
  }
  /// Those that are not over, which are forgotten.
  std::vector<memory_life> take_open() {
    std::vector<memory_life> all;
    for (const auto& one : std::exchange(open_, {})) all.push_back(one.second);
    return all;
  }

 private:
  std::map<std::uint64_t, memory_life> open_;  // by address
};

}  // namespace outboard::frontend::cupti
