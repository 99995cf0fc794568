#include "tool/client_lines.hh"

#include <unistd.h>

#include <array>

#include "base/schemes.hh"
#include "tool/cure.hh"

namespace outboard::tool {
namespace {

constexpr const char* program = " -- PROGRAM";

std::string this_machine() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data() : "THIS-MACHINE";
}

/// Whoever listens everywhere is reached by this machine's name.
std::string as_seen_by_clients(const std::string& url, const std::string& host) {
  std::string address(address_of(url));
  const std::size_t colon = address.rfind(':');
  if (colon == address.npos) return url;
  std::string port = address.substr(colon + 1);
  std::string at = address.substr(0, colon);
  if (at == "0.0.0.0" || at == "[::]") at = host;
  const scheme_traits& about = traits_of(url);
  return std::string(about.name) + ":" + at + (port == std::to_string(about.default_port) ? "" : ":" + port);
}

bool only_here(const std::string& url) {
  const std::string_view address = address_of(url);
  return address.starts_with("127.") || address.starts_with("localhost:") || address.starts_with("[::1]");
}

/// What a client of a network needs besides the URL, and how it gets there.
std::string line_for_network(const std::string& url, const config& c, const std::string& token_file,
                             const std::string& tokens_file) {
  const std::string host = this_machine();
  const std::string run = "outboard run --server " + shell_word(as_seen_by_clients(url, host));
  const bool here = only_here(url);
  const std::string where = here ? "on this machine: " : "on another machine: ";
  if (!token_file.empty() && here) return where + run + " --token-file " + shell_word(token_file) + program;
  if (!token_file.empty())
    return where + "scp -p " + shell_word(host) + ":" + shell_word(token_file) + " token && " + run +
           " --token-file token" + program;
  // A certificate that the authority has signed.
  if (!c.certificates.client_authority.empty())
    return where + "OUTBOARD_CLIENT_CERTIFICATE=FILE " + run + program;
  const bool named = !tokens_file.empty() && ::access(tokens_file.c_str(), F_OK) == 0;
  if (c.insecure || (here && !named)) return where + run + program;
  const std::string create = "outboard token create NAME" +
                             (c.tokens_file.empty() ? "" : " --tokens-file " + shell_word(c.tokens_file));
  return where + run + " --token-file NAME.token" + program + "; here, for NAME.token: (umask 077; " +
         create + " > NAME.token)";
}

}  // namespace

std::vector<std::string> lines_for_clients(const std::vector<std::string>& urls, const config& c,
                                           const std::string& token_file, const std::string& tokens_file) {
  std::vector<std::string> lines;
  for (const std::string& url : urls) {
    if (traits_of(url).name.empty()) continue;  // a plug-in's, which may reach anywhere
    if (traits_of(url).leaves_host) {
      lines.push_back(line_for_network(url, c, token_file, tokens_file));
      continue;
    }
    const std::string token = token_file.empty() ? "" : " --token-file " + shell_word(token_file);
    lines.push_back("on this machine: outboard run --server " + shell_word(url) + token + program);
  }
  return lines;
}

}  // namespace outboard::tool
