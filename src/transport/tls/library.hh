// Loads the shared object that holds TLS (openssl/), when it is needed and once. Any thread.
#pragma once

#include "base/result.hh"
#include "transport/tls/engine.hh"

namespace outboard::transport::tls {

/// The library of this process. An error says which file is missing or unfit; it stays so.
result<library*> load();

}  // namespace outboard::transport::tls
