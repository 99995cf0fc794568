#include "transport/list/list.hh"

#include "transport/plugin/plugin.hh"

namespace outboard::transport {

// Declared from the list and not through their headers, so that one line adds a transport. A line without a
// folder is a link error.
#define TRANSPORT(scheme, ...) std::unique_ptr<transport> make_##scheme(const make_options& options);
#include "base/schemes.def"
#undef TRANSPORT

status add_all(registry& to, const plugin_list& plugins) { return add_all(to, plugins, {}); }

status add_all(registry& to, const plugin_list& plugins, const make_options& options) {
#define TRANSPORT(scheme, ...) to.add(make_##scheme(options));
#include "base/schemes.def"
#undef TRANSPORT
  for (const auto& [name, library] : plugins) {
    auto plugin = plugin::load(library);
    if (!plugin.ok()) return std::move(plugin).error();
    if ((*plugin)->scheme() != name) {
      return failure("[transport." + name + "]: " + library + " is a transport of the name \"" +
                     std::string((*plugin)->scheme()) + "\"");
    }
    to.add(std::move(*plugin));
  }
  return {};
}

}  // namespace outboard::transport
