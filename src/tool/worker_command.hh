// How this program starts its own workers. Pure function.
#pragma once

#include "backend/daemon/workers/workers.hh"
#include "base/configuration/config.hh"

namespace outboard::tool {

backend::worker_command worker_command_line(const config& c);

}  // namespace outboard::tool
