// Turns a kernel's parameters, from the two forms in which a program gives them, into the bytes that the
// kernel reads. Free functions that write straight into a request; any thread.
#pragma once

#include <optional>
#include <span>

#include "marshal/cuda/kernel_table.hh"
#include "wire/cursor.hh"

namespace outboard::frontend::cuda {

/// u64 length, then each value at its offset; gaps are zero. `values` holds a pointer for each parameter.
void put_parameters(wire::writer& w, std::span<const marshal::kernel_parameter> layout, std::uint32_t bytes,
                    void* const* values);

/// The packed buffer named by cuLaunchKernel's `extra`; nothing: the list is not one (a length without a
/// buffer, an unknown key, no end).
std::optional<std::span<const std::byte>> packed_buffer(void* const* extra);

}  // namespace outboard::frontend::cuda
