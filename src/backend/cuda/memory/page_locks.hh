// The end of page-locked memory of the worker's own: the driver forgets it, and only then its pages go. Any
// thread.
#pragma once

#include <cstddef>

#include "api/cuda/driver_table.hh"

namespace outboard::backend {

/// What is left of the range: nothing, or a reservation as the driver makes them.
enum class range_after { unmapped, reserved };

/// The pages go, and the range stays out of anybody's reach. Where the process has too many mappings they
/// stay.
void reserve_again(void* memory, std::size_t size);

/// Unregisters whole pages and unmaps them. A driver that refuses (a broken context, none, a capture) goes on
/// taking the addresses for page-locked memory, so whatever names them must not reach memory that the worker
/// maps there later: fresh pages stay in their place until the session ends (false). Waits as long as the
/// driver does.
bool give_back_page_locked(const api::driver_table& driver, void* memory, std::size_t size,
                           range_after after = range_after::unmapped);

}  // namespace outboard::backend
