// Host memory that the program has made (cuMemCreate) at one of the addresses where it has mapped it: pages
// of a sealed file, which the client maps at the same address. The address lies in a range that the driver
// has reserved; there the pages are locked for all devices once one of them is given access. With the
// session's turn, but for the end.
#pragma once

#include <cstdint>

#include "api/cuda/driver_table.hh"

namespace outboard::backend {

/// Does this machine have the memory node, and may this process use it?
bool has_memory_node(std::int32_t node);

class host_piece {
 public:
  /// Nothing may lie in [address, address + size) but the reservation. `file` has at least `size` bytes.
  CUresult place(std::uint64_t address, std::uint64_t size, int file, std::int32_t node);
  /// For all devices, in the primary context of this one; once is enough.
  CUresult page_lock(const api::driver_table& driver, CUdevice device);
  /// The primary context has been reset: what was locked in it is locked again.
  void lock_again(const api::driver_table& driver, CUdevice device);
  /// Leaves the range reserved. Waits for the devices as the driver does; needs no turn. False: the driver
  /// would not forget the pages, and nothing else may ever lie there.
  bool remove(const api::driver_table& driver);
  std::uint64_t address() const { return address_; }

 private:
  void* memory() const { return reinterpret_cast<void*>(address_); }

  std::uint64_t address_ = 0, size_ = 0;
  bool locked_ = false;
  CUdevice device_ = 0;  // locked: in whose primary context
};

}  // namespace outboard::backend
