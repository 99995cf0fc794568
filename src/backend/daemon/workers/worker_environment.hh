// The environment of a worker: a clean base from the daemon's own, and over it the driver's variables with
// the client's values. The operator's restriction (CUDA_VISIBLE_DEVICES of the daemon) holds: a client
// chooses within it. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cuda/visible_devices.hh"

namespace outboard::backend {

using variables = std::vector<std::pair<std::string, std::string>>;
using variable_source = std::function<const char*(const char*)>;  ///< getenv

/// What a client sent, reduced to what the driver reads, sorted, each name once: equal for clients whose
/// workers may be exchanged. `uuids`: "GPU-…" of the devices that the daemon sees, by ordinal.
variables driver_environment(const variables& from_client, const variable_source& own,
                             std::span<const std::string> uuids);

/// Names all of them in one text, for comparing.
std::string key_of(const variables& driver);

/// "NAME=value" lines for exec: base and driver variables.
std::vector<std::string> worker_environment(const variables& driver, const variable_source& own);

/// `own` for sessions that get these devices alone, by UUID.
variable_source within_devices(variable_source own, const std::vector<std::string>& uuids);

/// `own` for a worker that may write in this folder only: what it and its drivers keep goes there, and what
/// its compilers keep into folders of `compilers`.
variable_source within_folder(variable_source own, const std::string& folder, const std::string& compilers);

/// The same for a worker that has CUDA's driver: this keeps what it has compiled where it would without.
variable_source within_folder_but_for_the_driver(const variable_source& own, const std::string& folder);

/// The client's CUDA_CACHE_MAXSIZE, but so that NVIDIA's compiler keeps no more than this.
variables within_cache_size(variables driver, std::uint64_t most);

/// The client's CUDA_VISIBLE_DEVICES within the daemon's. nullopt: not set.
std::optional<std::string> compose_visible_devices(std::optional<std::string_view> server,
                                                   std::optional<std::string_view> client,
                                                   std::span<const std::string> uuids);

/// What CUDA_VISIBLE_DEVICES among these means. nullopt: not set.
std::optional<api::visible_devices> visible_devices_of(const variables& driver,
                                                       std::span<const std::string> uuids);

}  // namespace outboard::backend
