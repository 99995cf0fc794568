#include "transport/tls/handed_over.hh"

#include <charconv>

#include "base/hex.hh"
#include "transport/tls/connection.hh"
#include "transport/tls/library.hh"

namespace outboard::transport::tls {
namespace {

constexpr char before_key = ' ';

bool read_key(std::string_view digits, secret& key) {
  if (digits.size() != 2 * key.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    unsigned value = 0;
    const char* const at = digits.data() + 2 * i;
    const auto [end, problem] = std::from_chars(at, at + 2, value, 16);
    if (problem != std::errc() || end != at + 2) return false;
    key[i] = static_cast<std::byte>(value);
  }
  return true;
}

}  // namespace

std::string handed_over(std::string_view scheme, const secret& key) {
  return std::string(scheme) + before_key + hex(key);
}

bool is_encrypted(std::string_view handed) { return handed.find(before_key) != handed.npos; }

result<std::unique_ptr<connection>> attach(const registry& transports, std::string_view handed,
                                           unique_fd fd) {
  const std::size_t space = handed.find(before_key);
  transport* const by = transports.find(handed.substr(0, space));
  if (!by) return failure("a connection of an unknown transport was handed over");
  auto raw = by->attach(std::move(fd));
  if (!raw.ok() || space == handed.npos) return raw;
  secret key{};
  if (!read_key(handed.substr(space + 1), key))
    return failure("a connection was handed over with a malformed key");
  auto loaded = load();
  if (!loaded.ok()) return std::move(loaded).error();
  auto inner = (*loaded)->start_server(key);
  if (!inner) return outboard::error{action::retry, "no memory is left for an encrypted connection"};
  return std::unique_ptr<connection>(
      std::make_unique<tls_connection>(std::move(*raw), std::move(inner), tls_connection::side::server));
}

}  // namespace outboard::transport::tls
