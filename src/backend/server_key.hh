// The files of a server's certificate and key, and the ones that it makes for itself. Any thread.
#pragma once

#include <string>

#include "base/result.hh"
#include "transport/tls/engine.hh"

namespace outboard::backend {

/// The whole of a file of certificates or keys. An error names it.
result<std::string> read_pem(const std::string& path);

/// The server's own key and certificate at `path`; made on the first call, with mode 0600, whole or not at
/// all. A file that others may read is refused.
result<std::string> own_certificate(transport::tls::library& by, const std::string& path);

}  // namespace outboard::backend
