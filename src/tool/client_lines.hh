// What `serve` says once it listens: the command that a client runs, for each place where it listens, so that
// the first user need not look for it. Pure but for the name of this machine; main thread.
#pragma once

#include <string>
#include <vector>

#include "base/configuration/config.hh"

namespace outboard::tool {

/// One line for the log each. `c` as it was read. `token_file`: that of the token for all, as its owner names
/// it; empty: there is none. `tokens_file`: that of named tokens, which need not be there.
std::vector<std::string> lines_for_clients(const std::vector<std::string>& urls, const config& c,
                                           const std::string& token_file, const std::string& tokens_file);

}  // namespace outboard::tool
