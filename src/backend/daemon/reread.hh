// A configuration that is read again while the daemon runs: which values take effect now, and which only at a
// start. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "base/configuration/config.hh"

namespace outboard::backend {

/// Copies what counts from now on.
void take_what_counts_now(config& running, const config& read);

/// Keys of a server's settings that differ and count from the next start on.
std::vector<std::string> changed_for_the_next_start(const config& before, const config& read);

}  // namespace outboard::backend
