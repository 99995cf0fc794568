// What a daemon decides before it listens: which devices it lends, and where caches lie. The main thread, at
// the start.
#pragma once

#include <string>
#include <string_view>

#include "backend/daemon/daemon.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::backend {

/// Four descriptors a session, and room for the rest; most systems start programs with 1,024.
void raise_descriptor_limit();

/// From where the daemon reads its signals, which do nothing else from now on.
result<unique_fd> take_signals();

struct passed_socket {
  std::string_view scheme;
  bool foreign = false;  ///< other hosts can reach it
};
/// What the manager of services has opened for us.
result<passed_socket> inspect_passed_socket(int fd);

/// Warns of `host_memory` and `cpu_weight` of identities where nothing keeps them.
void tell_of_limits_without_groups(const config& c, const group_choice& groups);

/// Where a cache of that name lies, of this service or user; empty: no one says.
std::string default_cache_directory(const variable_source& own, const std::string& name);

/// Tells the workers where module images are kept. False: nowhere.
bool prepare_cache(daemon_settings& settings);

/// Only the devices that the configuration names, in its order, for every worker and for lists.
status choose_visible(daemon_settings& settings, marshal::snapshot& snapshot);

}  // namespace outboard::backend
