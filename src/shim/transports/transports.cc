#include "shim/transports/transports.hh"

#include "transport/plugin/plugin.hh"
#include "transport/shm/shm.hh"
#include "transport/tcp/tcp.hh"
#include "transport/unix/unix.hh"

namespace outboard::shim {

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

}  // namespace outboard::shim
