// What a daemon settles before it listens: which devices it lends, and where caches lie. The main thread, at
// the start.
#pragma once

#include <string>

#include "backend/daemon.hh"
#include "marshal/snapshot.hh"

namespace outboard::backend {

/// Where a cache of that name lies, of this service or user; empty: no one says.
std::string default_cache_directory(const variable_source& own, const std::string& name);

/// Tells the workers where module images are kept. False: nowhere.
bool prepare_cache(daemon_settings& settings);

/// Only the devices that the configuration names, in its order, for every worker and for lists.
status choose_visible(daemon_settings& settings, marshal::snapshot& snapshot);

}  // namespace outboard::backend
