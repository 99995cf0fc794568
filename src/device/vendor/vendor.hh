// The vendor device: the real libcuda.so.1 of this machine, opened by resolved path, so that neither
// LD_LIBRARY_PATH nor our own front-end library can replace it. Owned by the worker; the driver's own thread
// rules apply. The library is never closed: the driver keeps threads that run its code.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.hh"
#include "device/device.hh"

namespace outboard::device::vendor {

struct options {
  /// Path of the library; empty: the first of candidates() that is not a front-end library of ours.
  std::string library;
};

/// Finds and opens the driver and fills the table: an entry holds the ABI that its name says, or null if this
/// driver does not have it. Calls nothing but cuDriverGetVersion; the caller calls cuInit.
result<std::unique_ptr<device>> open(const options& how = {});

/// The existing files that open() tries, in this order, resolved and without repetition: from
/// LD_LIBRARY_PATH, the loader's cache, and the folders where distributions, WSL and containers put the
/// driver.
std::vector<std::string> candidates();

/// The symbol that our front-end libraries export, which distinguishes them from the vendor's.
inline constexpr const char* frontend_marker = "outboard_frontend_marker";

}  // namespace outboard::device::vendor
