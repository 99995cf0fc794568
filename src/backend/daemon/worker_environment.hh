// The environment of a worker: a clean base from the daemon's own, and over it the driver's variables as the
// client has them. If the operator restricted the devices (CUDA_VISIBLE_DEVICES of the daemon), a client
// chooses among those that are left. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outboard::backend {

using variables = std::vector<std::pair<std::string, std::string>>;
using variable_source = std::function<const char*(const char*)>;  ///< getenv

/// Reduces a client's variables to those that the driver reads, sorted, each name once. The result is equal
/// for clients that can use each other's workers. `uuids`: "GPU-…" of the devices that the daemon sees, by
/// ordinal.
variables driver_environment(const variables& from_client, const variable_source& own,
                             std::span<const std::string> uuids);

/// "NAME=value" lines for exec: base and driver variables.
std::vector<std::string> worker_environment(const variables& driver, const variable_source& own);

/// `own`, changed for a worker that may write in `folder` only: it and its drivers keep their files there,
/// and its compilers keep theirs in folders of `compilers`.
variable_source within_folder(variable_source own, const std::string& folder, const std::string& compilers);
/// The same for CUDA's driver, which goes on to keep what it compiles where the daemon's user keeps it.
variable_source within_folder(variable_source own, const std::string& folder);

/// `own`, with these devices ("GPU-…") as the operator's list.
variable_source lending(variable_source own, std::span<const std::string> uuids);

/// Without the client's CUDA_CACHE_MAXSIZE: a driver applies it to the cache that all sessions share, so a
/// small one would empty it for the others, and a large one fill the disk.
variables without_cache_size(variables driver);

/// Lowers the client's CUDA_CACHE_MAXSIZE to `most`, or sets it, so that NVIDIA's compiler keeps no more.
variables within_cache_size(variables driver, std::uint64_t most);

/// Returns the client's CUDA_VISIBLE_DEVICES within the daemon's; nullopt: not set.
std::optional<std::string> compose_visible_devices(std::optional<std::string_view> server,
                                                   std::optional<std::string_view> client,
                                                   std::span<const std::string> uuids);

/// Returns whether the client's list names a device twice; a driver then returns CUDA_ERROR_INVALID_DEVICE.
bool names_device_twice(const variables& driver, std::span<const std::string> uuids);

}  // namespace outboard::backend
