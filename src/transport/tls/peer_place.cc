#include "transport/tls/peer_place.hh"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "transport/url.hh"

namespace outboard::transport::tls {

bool is_on_this_host(std::string_view text) {
  const auto parsed = parse_url(text);
  if (!parsed.ok()) return false;
  const auto where = parse_host_port(parsed->address);
  if (!where.ok()) return false;
  if (where->host == "localhost") return true;
  in_addr v4{};
  if (::inet_pton(AF_INET, where->host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, where->host.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

}  // namespace outboard::transport::tls
