// Where a back-end is, as text: "scheme:address", and the forms of addresses that transports share. Pure
// functions, any thread; the text may come from the environment, a file or a peer, so it may hold anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hh"

namespace outboard::transport {

/// Both are views into the parsed text.
struct url {
  std::string_view scheme;   ///< [a-z][a-z0-9+-]{0,15}
  std::string_view address;  ///< not empty, no control characters; the transport gives it its meaning
};
result<url> parse_url(std::string_view text);
bool is_scheme(std::string_view text);

struct host_port {
  std::string host;  ///< name, IPv4, or IPv6 without its brackets
  std::uint16_t port = 0;
};
/// "host:port" or "[v6]:port".
result<host_port> parse_host_port(std::string_view address);
/// The inverse of parse_host_port().
std::string format_host_port(const host_port& where);

/// For error messages: control characters and bytes above 0x7e become \xNN; at most 200 characters.
std::string printable(std::string_view text);

}  // namespace outboard::transport
