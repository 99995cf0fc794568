// Bodies with a field description as the payload of control messages (control.hh). Values.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "marshal/fields.hh"

namespace outboard::backend {

template <class Body>
std::vector<std::byte> payload_of(const Body& body) {
  std::vector<std::byte> payload;
  wire::writer w(payload);
  marshal::put_body(w, body);
  return payload;
}

/// Nothing: it is malformed.
template <class Body>
std::optional<Body> body_of(std::span<const std::byte> payload) {
  wire::reader r(payload);
  auto body = marshal::take_body<Body>(r);
  return r.finished() ? std::optional(std::move(body)) : std::nullopt;
}

}  // namespace outboard::backend
