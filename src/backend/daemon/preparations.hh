// What a daemon decides from its settings before it listens: where it keeps things, and which devices it
// lends. Pure functions but for the folders that they make; main thread.
#pragma once

#include <string>

#include "backend/daemon/daemon.hh"
#include "base/result.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

/// Returns where a cache of that name lies for this service or user; "" if no variable says.
std::string default_cache_directory(const variable_source& own, const std::string& name);

/// Gives the workers the folder for module images. Returns false if there is none.
bool prepare_cache(daemon_settings& settings);

/// Chooses the devices that the configuration names, in its order, for every worker and for lists.
status choose_visible(daemon_settings& settings, marshal::snapshot& snapshot);

}  // namespace outboard::backend
