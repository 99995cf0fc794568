// How another process continues a connection that was handed to it as a descriptor: by a transport's scheme,
// and for the inner end of an encrypted connection (connection.hh) with its key. Both travel as one text,
// which is a secret then. Any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "transport/tls/engine.hh"
#include "transport/transport.hh"

namespace outboard::transport::tls {

std::string handed_over(std::string_view scheme, const secret& key);

/// Would a connection that was handed over like this be encrypted?
bool is_encrypted(std::string_view handed);

/// Continues it. An error does not quote the text.
result<std::unique_ptr<connection>> attach(const registry& transports, std::string_view handed, unique_fd fd);

}  // namespace outboard::transport::tls
