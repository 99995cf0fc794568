// Numbers of users and groups of this machine, by name or number. They ask what the machine is told to ask
// (a directory, too), and may wait for it. Any one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace outboard::backend {

/// Nothing: there is no such user. A number is taken as it is.
std::optional<std::uint32_t> user_number(const std::string& name);
std::optional<std::uint32_t> group_number(const std::string& name);

}  // namespace outboard::backend
