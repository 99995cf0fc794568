// Bodies as docs/wire.md shows them: what tests of any of them ask.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "marshal/fields.hh"
#include "wire/document_testing.hh"

namespace outboard::marshal::testing {

template <class Body>
std::vector<std::byte> bytes_of(const Body& body) {
  std::vector<std::byte> out;
  wire::writer w(out);
  put_body(w, body);
  return out;
}

/// The body read back and written again.
template <class Body>
std::optional<std::vector<std::byte>> rewritten(std::span<const std::byte> bytes) {
  wire::reader r(bytes);
  const auto body = take_body<Body>(r);
  if (!r.finished()) return std::nullopt;
  return bytes_of(body);
}

/// It is written as the document's example of that name, and no damage to that is taken for something else.
template <class Body>
void expect_body(const std::string& name, const Body& body) {
  const std::vector<std::byte> bytes = bytes_of(body);
  wire::testing::expect_example(name, bytes);
  wire::testing::expect_survives_damage(bytes, rewritten<Body>);
}

}  // namespace outboard::marshal::testing
