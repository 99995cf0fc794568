// tcp:host:port and tcp:[v6]:port; listening on port 0 picks a free port. Unencrypted and unauthenticated:
// the hello decides who may connect, so listening beyond this host must be asked for (listen_options).
#pragma once

#include <memory>

#include "transport/make_options.hh"
#include "transport/transport.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_tcp(const make_options& options = {});

}  // namespace outboard::transport
