#include "base/random.hh"

#include <sys/random.h>

#include <algorithm>

#include "base/check.hh"

namespace outboard {

void fill_random(std::span<std::byte> out) {
  // Up to 256 bytes getrandom(2) is neither short nor interrupted.
  constexpr std::size_t whole = 256;
  while (!out.empty()) {
    const auto part = out.first(std::min(out.size(), whole));
    CHECK(::getrandom(part.data(), part.size(), 0) == static_cast<ssize_t>(part.size()));
    out = out.subspan(part.size());
  }
}

}  // namespace outboard
