// The file of the certificate and key that a server makes for itself. Any thread.
#pragma once

#include <string>

#include "base/result.hh"
#include "transport/tls/engine.hh"

namespace outboard::backend {

/// The server's own key and certificate at `path`; made on the first call, with mode 0600, whole or not at
/// all. A file that others may read is refused.
result<std::string> own_certificate(transport::tls::library& by, const std::string& path);

}  // namespace outboard::backend
