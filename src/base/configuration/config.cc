#include "base/configuration/config.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "base/configuration/config_file.hh"
#include "base/configuration/settings.hh"
#include "base/fd.hh"
#include "base/schemes.hh"

namespace outboard {
namespace {

constexpr std::array<std::string_view, 4> device_names{"auto", "vendor", "cpu", "mock"};

status apply_environment(config& c, const std::function<const char*(const char*)>& variable) {
  for (const setting& s : all_settings()) {
    const char* text = s.variable.empty() ? nullptr : variable(std::string(s.variable).c_str());
    // An empty variable counts as not set: shells make it hard to tell.
    if (!text || *text == '\0') continue;
    OUTBOARD_TRY(set_by_text(c, s, s.variable, text));
    c.origins[s.key()] = s.variable;
  }
  return {};
}

std::string reason() { return std::strerror(errno); }

result<std::string> read_all(int fd, const std::string& path) {
  std::string text;
  std::array<char, 4096> piece;
  while (true) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failure("cannot read " + path + ": " + reason());
    if (got == 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
    if (text.size() > (1u << 20)) return failure(path + " is larger than 1 MiB");
  }
}

/// Absent is nullopt where that is allowed.
result<std::optional<std::string>> read_file(const std::string& path, bool must_exist) {
  const unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    if (!must_exist && (errno == ENOENT || errno == ENOTDIR)) return std::optional<std::string>();
    return failure("cannot read " + path + ": " + reason());
  }
  auto text = read_all(fd.get(), path);
  if (!text.ok()) return std::move(text).error();
  return std::optional<std::string>(std::move(*text));
}

}  // namespace

std::string_view name(device_choice d) { return device_names[static_cast<std::size_t>(d)]; }

std::optional<device_choice> parse_device(std::string_view text) {
  const auto* at = std::find(device_names.begin(), device_names.end(), text);
  if (at == device_names.end()) return std::nullopt;
  return static_cast<device_choice>(at - device_names.begin());
}

config_sources default_config_sources() {
  config_sources sources;
  sources.files.push_back("/etc/outboard/outboard.toml");
  const char* xdg = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  // XDG: a relative path in the variable is to be ignored.
  if (xdg && xdg[0] == '/') {
    sources.files.push_back(std::string(xdg) + "/outboard/outboard.toml");
  } else if (home && home[0] == '/') {
    sources.files.push_back(std::string(home) + "/.config/outboard/outboard.toml");
  }
  sources.variable = [](const char* name) -> const char* { return std::getenv(name); };
  return sources;
}

result<config> load_config(const config_sources& sources) {
  config c;
  const bool chosen = !sources.must_exist.empty();
  for (const std::string& path : chosen ? std::vector{sources.must_exist} : sources.files) {
    auto text = read_file(path, chosen);
    if (!text.ok()) return std::move(text).error();
    if (!*text) continue;
    OUTBOARD_TRY(apply_config_text(c, **text, path));
    c.sources.push_back(path);
  }
  if (sources.variable) OUTBOARD_TRY(apply_environment(c, sources.variable));
  OUTBOARD_TRY(check_identities(c.identities));
  return c;
}

std::string with_default_port(std::string_view url) {
  std::string text(url);
  const std::uint16_t port = traits_of(url).default_port;
  if (port == 0) return text;
  const std::string_view address = address_of(url);
  const bool has_port = address.starts_with('[') ? address.find("]:") != std::string_view::npos
                                                 : address.find(':') != std::string_view::npos;
  if (!address.empty() && !has_port) text += ":" + std::to_string(port);
  return text;
}

namespace {

/// A host, or a host and a port, as people type it first.
bool looks_like_a_host(std::string_view part) {
  const std::size_t colon = part.find(':');
  const std::string_view host = part.substr(0, colon);
  const std::string_view port = colon == std::string_view::npos ? "" : part.substr(colon + 1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const bool plain = std::ranges::all_of(host, [&](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '-';
  });
  if (host.empty() || !plain || !traits_of(host).name.empty()) return false;
  return colon == std::string_view::npos || (!port.empty() && std::ranges::all_of(port, is_digit));
}

}  // namespace

result<std::vector<std::string>> parse_endpoints(std::string_view text) {
  std::vector<std::string> endpoints;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t colon = part.find(':');
    const bool host = looks_like_a_host(part);
    if (host || colon == 0 || colon == std::string_view::npos || colon + 1 == part.size()) {
      return failure("\"" + std::string(part) + "\" is no endpoint; " +
                     (host ? "did you mean tcp:" + std::string(part) + "? " : "") +
                     "accepted: " + url_forms());
    }
    endpoints.push_back(with_default_port(part));
    if (comma == std::string_view::npos) return endpoints;
    text.remove_prefix(comma + 1);
  }
}

result<std::vector<std::byte>> read_token(const std::string& path, std::string_view credentials) {
  const unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return failure("cannot read token file " + path + ": " + reason());
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) return failure("cannot read token file " + path + ": " + reason());
  if (!S_ISREG(about.st_mode)) return failure("token file " + path + " is not a regular file");
  // Root gives it to a group, systemd to a service by an access list, which shows as the group's bits.
  const bool handed_out =
      about.st_uid == 0 || (!credentials.empty() && path.starts_with(std::string(credentials) + '/'));
  if ((about.st_mode & (handed_out ? 037u : 077u)) != 0) {
    return failure("token file " + path + " may be read by others; run: chmod 600 " + path);
  }
  auto text = read_all(fd.get(), path);
  if (!text.ok()) return std::move(text).error();
  while (!text->empty() && std::isspace(static_cast<unsigned char>(text->back()))) text->pop_back();
  if (text->size() < 16) {
    return failure("token file " + path + " holds " + std::to_string(text->size()) +
                   " bytes, at least 16 are needed; make one with: head -c 32 /dev/urandom | base64");
  }
  const auto* first = reinterpret_cast<const std::byte*>(text->data());
  return std::vector<std::byte>(first, first + text->size());
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc()) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::array<std::pair<std::string_view, int>, 5> units{
      {{"", 0}, {"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};
  for (const auto& [name, shift] : units) {
    if (unit != name) continue;
    if (number > (~0ull >> shift)) return std::nullopt;
    return number << shift;
  }
  return std::nullopt;
}

}  // namespace outboard
