// What the tests of message bodies share: comparing a body with its example in docs/wire.md. For tests; one
// thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "marshal/fields.hh"
#include "wire/document_testing.hh"

namespace outboard::marshal::testing {

/// Writes the body, reads it back and writes it again.
template <class Body>
std::optional<std::vector<std::byte>> rewritten(std::span<const std::byte> bytes) {
  wire::reader r(bytes);
  const auto body = take_body<Body>(r);
  if (!r.finished()) return std::nullopt;
  return payload_of(body);
}

/// The body is written as the document's example of that name, and no damaged copy of it decodes to the same
/// body.
template <class Body>
void expect_body(const std::string& name, const Body& body) {
  const std::vector<std::byte> bytes = payload_of(body);
  wire::testing::expect_example(name, bytes);
  wire::testing::expect_survives_damage(bytes, rewritten<Body>);
}

}  // namespace outboard::marshal::testing
