// The command line with which this program starts its own workers. Pure function; any thread.
#pragma once

#include "backend/daemon/workers.hh"
#include "base/config.hh"

namespace outboard::tool {

backend::worker_command worker_command_line(const config& c);

}  // namespace outboard::tool
