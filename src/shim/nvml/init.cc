// The one init of libnvidia-ml.so.1: lists the transports, hooks fork and exit. No thread, no connection and
// no file before the program's nvmlInit.
#include <cstdlib>
#include <memory>

#include "base/log.hh"
#include "frontend/nvml/monitor.hh"
#include "transport/plugin/plugin.hh"
#include "transport/shm/shm.hh"
#include "transport/tcp/tcp.hh"
#include "transport/unix/unix.hh"

/// By this the back-end recognises, and refuses, our own library where it looks for the vendor's.
extern "C" __attribute__((visibility("default"))) const char outboard_frontend_marker[] =
    "outboard front-end";

namespace outboard::shim {
namespace {

using frontend::nvml::monitor;

status add_transports(transport::registry& transports,
                      const std::vector<std::pair<std::string, std::string>>& plugins) {
  transports.add(transport::make_unix());
  transports.add(transport::make_shm());
  transports.add(transport::make_tcp());
  for (const auto& [name, library] : plugins) {
    auto plugin = transport::plugin::load(library);
    if (!plugin.ok()) return std::move(plugin).error();
    if ((*plugin)->scheme() != name) {
      return failure("[transport." + name + "]: " + library + " is a transport of the name \"" +
                     std::string((*plugin)->scheme()) + "\"");
    }
    transports.add(std::move(*plugin));
  }
  return {};
}

__attribute__((constructor)) void start() {
  if (const char* level = std::getenv("OUTBOARD_LOG")) {
    if (const auto parsed = log::parse_level(level)) log::set_level(*parsed);
  }
  monitor::instance().boot(add_transports);
}

__attribute__((destructor)) void stop() { monitor::instance().shut_down(); }

}  // namespace
}  // namespace outboard::shim
