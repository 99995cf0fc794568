// What a worker must know to let its session share module images with others. Values; no thread rules.
#pragma once

#include "backend/disk/image_cache.hh"
#include "wire/hello.hh"

namespace outboard::backend {

struct image_terms {
  wire::nonce challenge{};  ///< from the session's greeting; proofs answer it
  image_scope scope{};
};

/// Sessions of one identity share images. Those with another token count as another identity, and so do those
/// of a server without a token.
image_scope scope_of(const std::string& identity, std::span<const std::byte> token);

}  // namespace outboard::backend
