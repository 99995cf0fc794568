// The examples of docs/wire.md, read for tests: a block opens with "```example-NAME" and holds hexadecimal
// bytes, and behind a ';' what they mean. For tests alone; throws nothing, reports by gtest.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstddef>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/hex.hh"
#include "base/testing/places.hh"

namespace outboard::wire::testing {

inline int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// One line's bytes; anything else than pairs of digits, blanks and a remark is an error of the document.
inline void add_bytes(const std::string& line, std::vector<std::byte>& to) {
  const std::string digits = line.substr(0, line.find(';'));
  for (std::size_t at = 0; at < digits.size();) {
    if (std::isspace(static_cast<unsigned char>(digits[at]))) {
      ++at;
      continue;
    }
    const int high = hex_digit(digits[at]);
    const int low = at + 1 < digits.size() ? hex_digit(digits[at + 1]) : -1;
    if (high < 0 || low < 0) {
      ADD_FAILURE() << "docs/wire.md: no bytes: " << line;
      return;
    }
    to.push_back(static_cast<std::byte>(high * 16 + low));
    at += 2;
  }
}

inline std::map<std::string, std::vector<std::byte>> read_examples() {
  std::map<std::string, std::vector<std::byte>> examples;
  std::ifstream document(in_checkout("docs/wire.md"));
  EXPECT_TRUE(document) << in_checkout("docs/wire.md");
  const std::string opening = "```example-";
  std::vector<std::byte>* into = nullptr;
  for (std::string line; std::getline(document, line);) {
    if (line.starts_with(opening)) {
      into = &examples[line.substr(opening.size())];
    } else if (line.starts_with("```")) {
      into = nullptr;
    } else if (into) {
      add_bytes(line, *into);
    }
  }
  return examples;
}

/// The document's example of this name holds exactly these bytes.
inline void expect_example(const std::string& name, std::span<const std::byte> bytes) {
  static const auto examples = read_examples();
  const auto found = examples.find(name);
  ASSERT_NE(found, examples.end()) << "docs/wire.md has no example " << name << "; the code gives "
                                   << hex(bytes);
  EXPECT_EQ(hex(found->second), hex(bytes)) << "docs/wire.md, example " << name;
}

/// What a decoder makes of a damaged message: it is refused, or understood as exactly what the bytes say, so
/// that writing it again gives the same bytes. `again(bytes)`: nothing when refused, else the message written
/// anew.
template <class Again>
void expect_survives_damage(const std::vector<std::byte>& whole, Again&& again) {
  ASSERT_EQ(hex(*again(whole)), hex(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // A copy of its own for each, so that a sanitizer sees one byte too far.
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(again(cut).has_value()) << "cut to " << size << " of " << whole.size() << " bytes";
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::vector<std::byte> flipped = whole;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto got = again(flipped);
    if (got.has_value()) {
      EXPECT_EQ(hex(*got), hex(flipped)) << "bit " << bit;
    }
  }
  std::vector<std::byte> longer = whole;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(again(longer).has_value()) << "a byte behind the end";
}

}  // namespace outboard::wire::testing
