// unix:/path: stream sockets of one host, with peer credentials and descriptor passing. The socket file is
// 0600; one left by a dead server is replaced, one of a living server is not.
#pragma once

#include <memory>

#include "transport/transport.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_unix();

}  // namespace outboard::transport
