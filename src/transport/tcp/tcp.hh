// tcp:host:port and tcp:[v6]:port; port 0 listens on a free one. Unencrypted and unauthenticated: who may
// connect is the hello's business, so listening beyond this host must be asked for (listen_options).
#pragma once

#include <memory>

#include "transport/make_options.hh"
#include "transport/transport.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_tcp(const make_options& options = {});

}  // namespace outboard::transport
