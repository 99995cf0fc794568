#include "transport/tls/handed_over.hh"

#include "base/hex.hh"
#include "transport/tls/connection.hh"
#include "transport/tls/library.hh"

namespace outboard::transport::tls {
namespace {

constexpr char before_key = ' ';

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
  if (!take_hex(handed.substr(space + 1), key))
    return failure("a connection was handed over with a malformed key");
  auto loaded = load();
  if (!loaded.ok()) return std::move(loaded).error();
  auto inner = (*loaded)->start_server(key);
  if (!inner) return outboard::error{action::retry, "no memory is left for an encrypted connection"};
  return std::unique_ptr<connection>(
      std::make_unique<tls_connection>(std::move(*raw), std::move(inner), tls_connection::side::server));
}

}  // namespace outboard::transport::tls
