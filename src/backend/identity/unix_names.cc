#include "backend/identity/unix_names.hh"

#include <grp.h>
#include <pwd.h>

#include <charconv>

namespace outboard::backend {
namespace {

std::optional<std::uint32_t> number_in(const std::string& text) {
  std::uint32_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

}  // namespace

std::optional<std::uint32_t> user_number(const std::string& name) {
  if (const auto number = number_in(name)) return number;
  const passwd* entry = ::getpwnam(name.c_str());
  return entry ? std::optional<std::uint32_t>(entry->pw_uid) : std::nullopt;
}

std::optional<std::uint32_t> group_number(const std::string& name) {
  if (const auto number = number_in(name)) return number;
  const group* entry = ::getgrnam(name.c_str());
  return entry ? std::optional<std::uint32_t>(entry->gr_gid) : std::nullopt;
}

}  // namespace outboard::backend
