// unix:/path: stream sockets of one host, with peer credentials and descriptor passing. The socket file has
// mode 0600; a dead server's file is replaced, a living server's is not.
#pragma once

#include <memory>

#include "transport/make_options.hh"
#include "transport/transport.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_unix(const make_options& options = {});

}  // namespace outboard::transport
