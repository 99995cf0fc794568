#include "backend/daemon/bounds/guest_sources.hh"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace outboard::backend {
namespace {

template <class Address>
std::string text_of(int family, const Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, &address, text.data(), text.size()) ? text.data() : "";
}

std::string network_of(in6_addr address) {
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    in_addr v4{};
    std::memcpy(&v4, address.s6_addr + 12, sizeof v4);
    return text_of(AF_INET, v4);
  }
  std::fill(address.s6_addr + 8, address.s6_addr + 16, std::uint8_t{0});
  return text_of(AF_INET6, address) + "/64";
}

}  // namespace

guest_sources::guest_sources(std::size_t most)
    : most_(most), most_of_one_(std::max<std::size_t>(1, most * 3 / 4)) {}

std::optional<guest_sources::choice> guest_sources::in_the_way_of(const std::string& source) const {
  const auto own = by_source_.find(source);
  if (own != by_source_.end() && own->second.size() >= most_of_one_) {
    return choice{*own->second.begin(),
                  "more than " + std::to_string(most_of_one_) +
                      " connections without a hello from one source, and this was the oldest"};
  }
  if (present_ < most_) return std::nullopt;
  // Among sources that have equally many it is the one with the oldest guest.
  const auto worst = std::ranges::max_element(by_source_, [](const auto& a, const auto& b) {
    if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
    return *a.second.begin() > *b.second.begin();
  });
  return choice{*worst->second.begin(),
                "more than " + std::to_string(most_) +
                    " connections without a hello, and this was the oldest of the source that has the most"};
}

void guest_sources::enter(const std::string& source, guest_id id) {
  if (by_source_[source].insert(id).second) ++present_;
}

void guest_sources::leave(const std::string& source, guest_id id) {
  const auto at = by_source_.find(source);
  if (at == by_source_.end() || at->second.erase(id) == 0) return;
  --present_;
  if (at->second.empty()) by_source_.erase(at);
}

std::string source_of(int socket, const std::string& otherwise) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return otherwise;
  if (address.ss_family == AF_INET)
    return text_of(AF_INET, reinterpret_cast<const sockaddr_in&>(address).sin_addr);
  if (address.ss_family == AF_INET6)
    return network_of(reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
  ucred who{};
  size = sizeof who;
  if (address.ss_family == AF_UNIX && ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
    return "user " + std::to_string(who.uid);
  return otherwise;
}

std::string without_port(const std::string& from) { return from.substr(0, from.rfind(':')); }

}  // namespace outboard::backend
