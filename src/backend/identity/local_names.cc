#include "backend/identity/local_names.hh"

#include <grp.h>
#include <pwd.h>

#include <charconv>
#include <string_view>

namespace outboard::backend {
namespace {

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> user_named(const std::string& name) {
  if (const auto number = number_in(name)) return number;
  const passwd* entry = ::getpwnam(name.c_str());
  return entry ? std::optional<std::uint32_t>(entry->pw_uid) : std::nullopt;
}

std::optional<std::uint32_t> group_named(const std::string& name) {
  if (const auto number = number_in(name)) return number;
  const group* entry = ::getgrnam(name.c_str());
  return entry ? std::optional<std::uint32_t>(entry->gr_gid) : std::nullopt;
}

}  // namespace outboard::backend
