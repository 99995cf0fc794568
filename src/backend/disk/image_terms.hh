// What a worker is told so that its session can share module images with others. Values.
#pragma once

#include "backend/disk/image_cache.hh"
#include "wire/hello.hh"

namespace outboard::backend {

struct image_terms {
  wire::nonce challenge{};  ///< of the session's greeting: proofs answer it
  image_scope scope{};
};

/// Images are shared by sessions of one identity; those that prove another token are others, and so are those
/// of a server without one. `secret`: wire::file_secret() of the server's token; empty without one.
image_scope scope_of(const std::string& identity, std::span<const std::byte> secret);

}  // namespace outboard::backend
