// Random bytes of the kernel: for tokens, challenges, secrets and names that nobody can guess. Any thread.
#pragma once

#include <cstddef>
#include <span>

namespace outboard {

/// Waits only where the machine has just been booted and has no random numbers yet. Never gives fewer: a
/// kernel that has none at all is a CHECK.
void fill_random(std::span<std::byte> out);

/// A fresh value of a type that is bytes alone, such as std::array<std::byte, 16>.
template <class T>
T random_value() {
  T value;
  fill_random(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace outboard
