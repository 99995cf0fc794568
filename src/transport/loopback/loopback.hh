// loopback:name: connections inside one process, for tests and as the example of a transport. Each transport
// object has its own names. Safe from any thread; connections and listeners may outlive the transport.
#pragma once

#include <cstddef>
#include <memory>

#include "transport/transport.hh"

namespace outboard::transport {

struct loopback_options {
  std::size_t buffer = 256 << 10;  ///< bytes under way in each direction before a sender waits
};

std::unique_ptr<transport> make_loopback(const loopback_options& options = {});

}  // namespace outboard::transport
