// Files of certificates and keys, as PEM. Any thread.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <string>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::transport::tls {

/// More than any chain of certificates.
inline constexpr std::size_t most_of_pem = 1u << 20;

/// For reading, with what is said of it; none (errno says why) if it is no regular file.
unique_fd open_pem(const std::string& path, struct stat& about);

/// The whole text.
result<std::string> read_pem(const std::string& path);

}  // namespace outboard::transport::tls
