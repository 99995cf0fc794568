// What is known of a transport by its scheme alone, before there is a connection: for settings, messages and
// choices. What a connection can do is in transport::capabilities. Constants; any thread.
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

/// Those of schemes.def, in that order.
std::span<const scheme_traits> schemes();

/// Of a URL or of a scheme alone. A transport that is a plug-in has no traits.
const scheme_traits& traits_of(std::string_view url);

/// The transport that shares memory.
const scheme_traits& memory_scheme();

/// "unix:/path, shm:/path, tcp:host[:port]", or with another word before the last one.
std::string url_forms(std::string_view before_last = ", ");

/// What follows the scheme.
std::string_view address_of(std::string_view url);

}  // namespace outboard
