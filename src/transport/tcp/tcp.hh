// tcp:host:port and tcp:[v6]:port; port 0 listens on a free one. Unencrypted and unauthenticated: who may
// connect is the hello's business, so listening beyond this host must be asked for (listen_options).
#pragma once

#include <chrono>
#include <memory>

#include "transport/transport.hh"

namespace outboard::transport {

struct tcp_options {
  /// A peer whose kernel answers nothing for this long is gone. A peer that is merely stopped (debugger) is
  /// not: its kernel answers.
  std::chrono::milliseconds silence = std::chrono::seconds(30);
};

std::unique_ptr<transport> make_tcp(const tcp_options& options = {});

}  // namespace outboard::transport
