// Arithmetic of the reference machine, one value at a time, as the ISA's text says. Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <optional>

#include "ptx/reference/operation.hh"

namespace outboard::ptx::reference {

/// Values are the bits of their type, zero above. `carry` is the thread's condition code.
struct operands {
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
  bool* carry = nullptr;
  unsigned table = 0;  ///< lop3
};

/// Returns nothing when the operation is not arithmetic.
std::optional<std::uint64_t> compute(const operation& o, const operands& in);
bool compare(relation r, type t, bool flushes, std::uint64_t a, std::uint64_t b);
std::uint64_t converted(const operation& o, std::uint64_t a);
/// The value that memory holds after the update of `old`.
std::uint64_t updated(update u, type t, std::uint64_t old, std::uint64_t b, std::uint64_t c);

std::uint64_t masked(std::uint64_t v, unsigned bytes);
std::int64_t extended(std::uint64_t v, unsigned bytes);

}  // namespace outboard::ptx::reference
