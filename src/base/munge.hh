// MUNGE (https://dun.github.io/munge): how a process shows which user it is to whoever has the same key, by a
// service of each machine. Its own library is loaded when it is first needed, so that who does not use it
// needs no such thing. Each call asks that service and waits for it, milliseconds as a rule. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.hh"

namespace outboard::munge {

/// What a credential says of who made it; `content` is what they put into it.
struct claim {
  std::uint32_t user = 0, group = 0;
  std::vector<std::byte> content;
};

/// `socket` of the service; empty: where the library looks. An error is a sentence with its cure.
result<std::string> make_credential(const std::string& socket, std::span<const std::byte> content);
/// An error with action::retry: this machine's service cannot be asked, which is not the credential's fault.
result<claim> read_credential(const std::string& socket, const std::string& credential);

}  // namespace outboard::munge
