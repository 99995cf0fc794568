#include "transport/url.hh"

#include <charconv>
#include <cstdio>

#include "base/schemes.hh"

namespace outboard::transport {

namespace {

constexpr std::size_t longest_url = 4096;  // PATH_MAX; a host name has at most 253 characters
constexpr std::size_t longest_scheme = 16;

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

error bad_url(std::string_view text, const std::string& why) {
  return failure("'" + printable(text) + "' is no address of a back-end: " + why + "; expected " +
                 url_forms(" or "));
}

error bad_address(std::string_view text, const std::string& why) {
  return failure("'" + printable(text) + "' is no host:port: " + why);
}

result<std::uint16_t> parse_port(std::string_view address, std::string_view text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  auto [stop, code] = std::from_chars(text.data(), end, value);
  if (text.empty()) return bad_address(address, "the port is missing");
  if (code != std::errc() || stop != end || value > 65535)
    return bad_address(address, "the port '" + printable(text) + "' is not a number from 0 to 65535");
  return static_cast<std::uint16_t>(value);
}

}  // namespace

bool is_scheme(std::string_view text) {
  if (text.empty() || text.size() > longest_scheme || !is_lower(text[0])) return false;
  for (char c : text)
    if (!is_lower(c) && !is_digit(c) && c != '+' && c != '-') return false;
  return true;
}

result<url> parse_url(std::string_view text) {
  if (text.empty()) return bad_url(text, "it is empty");
  if (text.size() > longest_url)
    return bad_url(text, std::to_string(text.size()) + " characters, at most " + std::to_string(longest_url));
  for (char c : text)
    if (is_control(c)) return bad_url(text, "it holds a control character");
  std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return bad_url(text, "it names no transport");
  url parts{text.substr(0, colon), text.substr(colon + 1)};
  if (!is_scheme(parts.scheme)) return bad_url(text, "'" + printable(parts.scheme) + "' names no transport");
  if (parts.address.substr(0, 2) == "//")
    return bad_url(text, "write " + std::string(parts.scheme) + ": without //");
  if (parts.address.empty()) return bad_url(text, "nothing follows the transport's name");
  return parts;
}

result<host_port> parse_host_port(std::string_view address) {
  std::string_view host, rest;
  if (!address.empty() && address[0] == '[') {
    std::size_t bracket = address.find(']');
    if (bracket == std::string_view::npos) return bad_address(address, "the ] is missing");
    host = address.substr(1, bracket - 1);
    rest = address.substr(bracket + 1);
    if (host.find(':') == std::string_view::npos)
      return bad_address(address, "brackets are for IPv6 addresses");
    if (rest.empty() || rest[0] != ':') return bad_address(address, "the port is missing");
  } else {
    std::size_t colon = address.rfind(':');
    if (colon == std::string_view::npos) return bad_address(address, "the port is missing");
    host = address.substr(0, colon);
    rest = address.substr(colon);
    if (host.find(':') != std::string_view::npos)
      return bad_address(address, "write an IPv6 address in brackets, as in [::1]:1234");
  }
  if (host.empty()) return bad_address(address, "the host is missing");
  if (host.size() > 255) return bad_address(address, "a host name has at most 255 characters");
  for (char c : host)
    if (is_control(c) || c == ' ' || c == '/' || c == '@' || c == '[' || c == ']')
      return bad_address(address,
                         "'" + printable(std::string_view(&c, 1)) + "' cannot be part of a host name");
  result<std::uint16_t> port = parse_port(address, rest.substr(1));
  if (!port) return std::move(port).error();
  return host_port{std::string(host), *port};
}

std::string format_host_port(const host_port& where) {
  bool v6 = where.host.find(':') != std::string::npos;
  return (v6 ? "[" + where.host + "]" : where.host) + ":" + std::to_string(where.port);
}

std::string printable(std::string_view text) {
  constexpr std::size_t most = 200;
  std::string out;
  for (char c : text) {
    if (out.size() >= most) return out + "...";
    if (!is_control(c) && static_cast<unsigned char>(c) < 0x7f) {
      out += c;
    } else {
      char hex[5];
      std::snprintf(hex, sizeof hex, "\\x%02x", static_cast<unsigned char>(c));
      out += hex;
    }
  }
  return out;
}

}  // namespace outboard::transport
