#include "tool/cure.hh"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/configuration/settings.hh"
#include "base/schemes.hh"
#include "wire/hello.hh"

namespace outboard::tool {
namespace {

constexpr const char* servers_token = "/etc/outboard/token";

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// Of "host:port" and "[address]:port".
std::string host_of(std::string_view url) {
  const std::string host(address_of(url));
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.rfind(':'));
}

std::string command_of_token(const config& c, const std::string& url) {
  const std::string own = resolved_path("~/.config/outboard/token", "");
  const bool local = stays_on_host(url);
  if (c.token_file.empty() && (local || is_there(own)))
    return "export OUTBOARD_TOKEN_FILE=" + shell_word(local ? servers_token : own);
  const std::string to = shell_word(c.token_file.empty() ? own : c.token_file);
  return local ? std::string("sudo cp ") + servers_token + " " + to
               : "scp " + shell_word(host_of(url)) + ":" + servers_token + " " + to;
}

std::string command_of_start(const std::string& url) {
  constexpr const char* start = "systemctl start outboard";
  if (traits_of(url).leaves_host) {
    const std::string host = host_of(url);
    // This machine is not reached by ssh from itself.
    if (host != "localhost" && !host.starts_with("127.") && host != "::1")
      return "ssh " + shell_word(host) + " sudo " + start;
  } else if (address_of(url).starts_with("/run/outboard/") &&
             (is_there("/lib/systemd/system/outboard.service") ||
              is_there("/etc/systemd/system/outboard.service"))) {
    return std::string("sudo ") + start;
  }
  return "outboard serve --listen " + shell_word(url);
}

/// What a refusal is about; without a reason of the server's it is TLS, or the socket's credentials.
std::string_view section_of_refusal(const std::string& url, const error& why) {
  using enum wire::refusal_reason;
  switch (static_cast<wire::refusal_reason>(why.reason)) {
    case token:
      return "docs/command.md#who-gets-in";
    case protocol:
    case malformed:
    case question:
      return "docs/install.md";
    case device:
    case window:
    case devices:
      return "docs/command.md#what-clients-see";
    case busy:
      return "docs/command.md#identities";
  }
  return traits_of(url).leaves_host ? "docs/command.md#encryption" : "docs/command.md#who-gets-in";
}

}  // namespace

std::string shell_word(std::string_view text) {
  constexpr std::string_view harmless = "%+,-./:=@_";
  const bool plain = std::ranges::all_of(text, [&](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           harmless.find(static_cast<char>(c)) != harmless.npos;
  });
  if (plain && !text.empty()) return std::string(text);
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

cure cure_by_package(std::string_view product_wanted) {
  const std::string version(product_wanted.substr(product_wanted.find(' ') + 1));
  const bool by_apt = is_there("/usr/bin/apt");
  const std::string_view about =
      by_apt ? "docs/install.md#debian-ubuntu" : "docs/install.md#systems-with-rpm";
  // It may be a server's word.
  if (version.empty() || version.size() > 32 || version.find_first_not_of("0123456789.") != version.npos)
    return {"", about};
  return {by_apt ? "sudo apt install ./outboard_" + version + "_amd64.deb"
                 : "sudo rpm -U outboard-" + version + "-1.x86_64.rpm",
          about};
}

cure cure_of_silence(const config& c, const std::string& url, const error& why) {
  if (why.next == action::reconnect)
    return {command_of_start(url), "docs/how-to/gpu-box.md#if-it-does-not-work"};
  // Whoever comes by MUNGE needs none: the sentence says what it is.
  const bool munge = c.munge.on && c.token_file.empty();
  const bool token = !munge && why.reason == static_cast<int>(wire::refusal_reason::token);
  return {token ? command_of_token(c, url) : "", section_of_refusal(url, why)};
}

cure cure_of_token_file(const config& c) {
  struct stat about {};
  const bool open = ::stat(c.token_file.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
                    about.st_uid == ::geteuid() && (about.st_mode & 077) != 0;
  return {open ? "chmod 600 " + shell_word(c.token_file) : "", "docs/command.md#who-gets-in"};
}

cure cure_of_no_place() { return {"", "docs/command.md#identities"}; }

cure cure_of_no_device() { return {"", "docs/command.md#what-clients-see"}; }

cure cure_of_transports() { return {"", "docs/extending.md#a-transport"}; }

}  // namespace outboard::tool
