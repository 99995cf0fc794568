// Users and groups of this machine by name or number, as configurations name them. Main thread: the system's
// look-ups share their result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace outboard::backend {

/// Nothing: there is none of that name. A number stands for itself.
std::optional<std::uint32_t> user_named(const std::string& name);
std::optional<std::uint32_t> group_named(const std::string& name);

}  // namespace outboard::backend
