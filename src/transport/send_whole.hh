// Sends one piece of bytes, as receive_whole() receives one.
#pragma once

#include <cstddef>
#include <span>

#include "transport/transport.hh"

namespace outboard::transport {

/// As connection::send(); the error is that of gone().
status send_whole(connection& to, std::span<const std::byte> bytes, deadline until = no_deadline);

}  // namespace outboard::transport
