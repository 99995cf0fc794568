// shm:/path: rings in memory that both processes share, on top of the Unix socket at that path, which carries
// identity, descriptors and the end. The rules for the file are those of unix:. attach() continues a
// connection of unix: if both ends have agreed to use rings.
#pragma once

#include <memory>

#include "transport/make_options.hh"
#include "transport/transport.hh"

namespace outboard::transport {

std::unique_ptr<transport> make_shm(const make_options& options = {});

}  // namespace outboard::transport
