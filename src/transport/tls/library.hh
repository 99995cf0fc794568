// Loads the shared object that holds TLS (openssl/), when it is needed and once. Any thread.
#pragma once

#include "base/result.hh"
#include "transport/tls/engine.hh"

namespace outboard::transport::tls {

/// The library of this process. An error says which file is missing or unfit; it stays so.
result<library*> load();

/// Loads it, and does what a process's first connection does once and takes some milliseconds for. For who
/// will have no files any more when clients come. Where it is missing there is no gate, and nobody comes
/// encrypted.
void prepare_to_serve();

}  // namespace outboard::transport::tls
