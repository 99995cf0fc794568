#include "frontend/settings.hh"

#include <cstdlib>

namespace outboard::frontend {

result<settings> client_settings() {
  settings s;
  const char* servers = std::getenv("OUTBOARD_SERVER");
  if (!servers || !*servers) {
    return failure(
        "no server: set OUTBOARD_SERVER (unix:/path or tcp:host:port), or start the program with `outboard "
        "run`");
  }
  std::string_view rest = servers;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    if (const auto url = rest.substr(0, comma); !url.empty()) s.servers.emplace_back(url);
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  const char* sync = std::getenv("OUTBOARD_SYNC");
  s.synchronous = sync && *sync && std::string_view(sync) != "0";
  return s;
}

status add_plugins(const settings&, transport::registry&) { return {}; }

result<dialed> dial_any(const settings& s, const transport::registry& transports, const wire::hello& hello,
                        transport::deadline until) {
  std::string reasons;
  for (const std::string& url : s.servers) {
    auto got = dial(transports, url, hello, s.token, until);
    if (got) return got;
    if (!reasons.empty()) reasons += "; ";
    reasons += got.error().message;
  }
  return failure(reasons.empty() ? "no server is named" : reasons);
}

}  // namespace outboard::frontend
