// Whether an address is this machine's own, by the text alone: between two programs of one machine nobody is
// on the way. Pure function; any thread.
#pragma once

#include <string_view>

namespace outboard::transport::tls {

/// "tcp:127.0.0.1:80", "tcp:[::1]:80", "tcp:localhost:80": a listener's URL, or what a connection says of its
/// peer. Any other name is another machine's.
bool is_on_this_host(std::string_view url);

}  // namespace outboard::transport::tls
