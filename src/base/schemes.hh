// What a scheme alone tells of its transport, before there is a connection: for settings, messages and
// choices. What a connection can do, its capabilities tell (transport/transport.hh). Constants; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace outboard {

struct scheme_traits {
  std::string_view name = {};
  std::string_view address_form = {};    ///< for messages: "/path"
  bool has_socket_file = false;          ///< an address is the path of a socket with an owner and a mode
  bool leaves_host = false;              ///< clients of other hosts can reach it
  bool shares_memory = false;            ///< attach() turns a connected Unix socket into shared memory
  std::string_view handed_over_as = {};  ///< the scheme by which another process continues its connections
                                         ///< before they are set up; empty: its own
  std::uint16_t default_port = 0;        ///< 0: an address has none
};

/// The rows of schemes.def, in that order.
std::span<const scheme_traits> schemes();

/// Of a URL or of a scheme alone. A plug-in's transport, and a scheme that nobody has, are without traits.
const scheme_traits& traits_of(std::string_view url);

/// No client of another host can reach it there. False of a plug-in's transport, of which that is not known.
inline bool stays_on_host(std::string_view url) {
  const scheme_traits& about = traits_of(url);
  return !about.name.empty() && !about.leaves_host;
}

/// The first row that has it. There must be one.
const scheme_traits& scheme_with(bool scheme_traits::*trait);

/// The transport that shares memory.
inline const scheme_traits& memory_scheme() { return scheme_with(&scheme_traits::shares_memory); }

/// "unix:/path, shm:/path, tcp:host[:port]".
inline constexpr std::string_view all_url_forms = [] {
  constexpr std::string_view each_with_comma =
#define TRANSPORT(scheme, form, ...) #scheme ":" form ", "
#include "base/schemes.def"
#undef TRANSPORT
      ;
  return each_with_comma.substr(0, each_with_comma.size() - 2);
}();
/// The same for a sentence, maybe with another word before the last one.
std::string url_forms(std::string_view before_last = ", ");

/// What follows the scheme.
std::string_view address_of(std::string_view url);

}  // namespace outboard
