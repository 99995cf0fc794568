// shm:/path: rings in memory that both processes share, beside the Unix socket of that path, which carries
// identity, descriptors and the end. The file is as with unix:; attach() continues a connection of unix:
// where both ends have agreed on it.
#pragma once

#include <memory>

#include "transport/make_options.hh"
#include "transport/transport.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_shm(const make_options& options = {});

}  // namespace outboard::transport
