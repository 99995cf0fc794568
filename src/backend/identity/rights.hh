// What an identity may do at a server. Values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace outboard::backend {

enum class right : std::uint8_t {
  run = 1,          ///< programs, whatever API they use
  list = 2,         ///< its own sessions
  list_all = 4,     ///< everybody's sessions
  suspend = 8,      ///< its own sessions, by checkpoints
  administer = 16,  ///< reload the server, and end sessions of others
};

/// A set of rights.
class rights {
 public:
  constexpr rights() = default;
  static constexpr rights all() { return rights(31); }
  /// By the words of the setting identity.rights, which were checked when they were read.
  static rights of(std::span<const std::string> words);

  constexpr bool has(right one) const { return (bits_ & static_cast<unsigned>(one)) != 0; }
  /// As the setting has them, with ", " in between; "none".
  std::string text() const;
  bool operator==(const rights&) const = default;

 private:
  constexpr explicit rights(unsigned bits) : bits_(bits) {}
  unsigned bits_ = 0;
};

/// As the setting has it.
std::string_view word_of(right one);

}  // namespace outboard::backend
