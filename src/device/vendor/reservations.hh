// Where NVIDIA's driver reserves addresses for what it places itself: modules and their variables, pools,
// memory that it shares with the device. It asks the C library's mmap() for room, without saying where; in
// this process the answer can be made the same as in another one, whatever the kernel's randomisation says. A
// session that goes on in another worker needs that: its program has addresses of variables
// (docs/how-to/replace-workers.md).
#pragma once

#include <cstdint>

namespace outboard::device::vendor {

/// From the next open() on what the driver reserves lies there, in the order of its requests, each from a
/// multiple of 2 MiB. 0: where the kernel puts it, which is so until this is called. Before other threads.
void reserve_from(std::uint64_t address);

namespace detail {
/// The library that has this function is the driver.
void reserve_for(const void* function);
}  // namespace detail

}  // namespace outboard::device::vendor
