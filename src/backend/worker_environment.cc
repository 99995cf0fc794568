#include "backend/worker_environment.hh"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "marshal/driver_variables.hh"

namespace outboard::backend {
namespace {

constexpr std::string_view visible_devices = "CUDA_VISIBLE_DEVICES";

/// What a process and the driver need of the host: paths, locale, the operator's own choices; no secrets.
constexpr std::array<std::string_view, 20> base_variables{
    "ASAN_OPTIONS",
    "CUDA_CACHE_PATH",
    "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
    "CUDA_MPS_LOG_DIRECTORY",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
    "CUDA_MPS_PIPE_DIRECTORY",
    "HOME",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "LOGNAME",
    "LSAN_OPTIONS",
    "PATH",
    "TMPDIR",
    "TSAN_OPTIONS",
    "TZ",
    "UBSAN_OPTIONS",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
};

std::vector<std::string_view> split(std::string_view list) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t comma = list.find(',');
    std::string_view part = list.substr(0, comma);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    parts.push_back(part);
    if (comma == std::string_view::npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

std::optional<std::size_t> as_index(std::string_view text) {
  std::size_t index = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return index;
}

}  // namespace

std::optional<std::size_t> find_device(std::string_view entry, std::span<const std::string> uuids) {
  if (const auto index = as_index(entry)) return *index < uuids.size() ? index : std::nullopt;
  if (entry.size() < 5) return std::nullopt;  // the driver wants "GPU-" and something that is unambiguous
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < uuids.size(); ++i) {
    if (!uuids[i].starts_with(entry)) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

std::optional<std::string> compose_visible_devices(std::optional<std::string_view> server,
                                                   std::optional<std::string_view> client,
                                                   std::span<const std::string> uuids) {
  if (!server) return client ? std::optional<std::string>(*client) : std::nullopt;
  // By UUID, because what an index means depends on CUDA_DEVICE_ORDER, which is the client's.
  std::string list;
  const auto add = [&](std::size_t ordinal) { list.append(list.empty() ? "" : ",").append(uuids[ordinal]); };
  if (!client) {
    for (std::size_t i = 0; i < uuids.size(); ++i) add(i);
  } else {
    // As the driver does it: the first entry that means nothing ends the list.
    for (const std::string_view entry : split(*client)) {
      const auto ordinal = find_device(entry, uuids);
      if (!ordinal) break;
      add(*ordinal);
    }
  }
  return list.empty() ? "-1" : list;
}

variables driver_environment(const variables& from_client, const variable_source& own,
                             std::span<const std::string> uuids) {
  std::map<std::string, std::string> chosen;
  for (const auto& [name, value] : from_client) {
    if (!marshal::is_driver_variable(name) || value.find('\0') != std::string::npos) continue;
    chosen[name] = value;
  }
  const auto at = chosen.find(std::string(visible_devices));
  const char* server = own(visible_devices.data());
  const auto composed = compose_visible_devices(
      server ? std::optional<std::string_view>(server) : std::nullopt,
      at != chosen.end() ? std::optional<std::string_view>(at->second) : std::nullopt, uuids);
  if (composed) chosen[std::string(visible_devices)] = *composed;
  return {chosen.begin(), chosen.end()};
}

std::vector<std::string> worker_environment(const variables& driver, const variable_source& own) {
  std::vector<std::string> lines;
  for (const std::string_view name : base_variables) {
    const char* value = own(name.data());
    if (value) lines.push_back(std::string(name) + "=" + value);
  }
  for (const auto& [name, value] : driver) lines.push_back(name + "=" + value);
  return lines;
}

}  // namespace outboard::backend
