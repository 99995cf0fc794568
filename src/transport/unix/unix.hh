// unix:/path: stream sockets of one host, with peer credentials and descriptor passing. The socket file is
// 0600; one left by a dead server is replaced, one of a living server is not.
#pragma once

#include <memory>

#include "transport/make_options.hh"
#include "transport/transport.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_unix(const make_options& options = {});

}  // namespace outboard::transport
