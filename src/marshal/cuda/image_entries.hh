// Inside of marshal's image code: which entries of a fatbin a device takes. One rule for what is sent and
// what is parsed. Pure function.
#pragma once

#include <span>

#include "marshal/cuda/image.hh"
#include "marshal/cuda/image_fatbin.hh"

namespace outboard::marshal {

/// Null: there is none. A driver takes the machine code, and the PTX when there is none or it is told to.
struct chosen_entries {
  const fatbin_entry* cubin = nullptr;
  const fatbin_entry* ptx = nullptr;
};

chosen_entries choose_entries(std::span<const fatbin_entry> entries, const image_target& target);

}  // namespace outboard::marshal
