#include "backend/daemon/workers/worker_environment.hh"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/joined.hh"
#include "marshal/cuda/driver_variables.hh"

namespace outboard::backend {
namespace {

constexpr std::string_view visible_devices = "CUDA_VISIBLE_DEVICES";

/// What a process and the driver need of the host: paths, locale, the operator's own choices; no secrets.
constexpr std::array<std::string_view, 23> base_variables{
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
    "OCL_ICD_FILENAMES",
    "OCL_ICD_VENDORS",
    "PATH",
    "POCL_CACHE_DIR",
    "TMPDIR",
    "TSAN_OPTIONS",
    "TZ",
    "UBSAN_OPTIONS",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
};

}  // namespace

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
    // One that is named twice stays so: the driver then refuses the list.
    for (const std::size_t ordinal : api::read_visible_devices(*client, uuids).ordinals) add(ordinal);
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

std::optional<api::visible_devices> visible_devices_of(const variables& driver,
                                                       std::span<const std::string> uuids) {
  const auto at = std::ranges::find(driver, visible_devices, &variables::value_type::first);
  if (at == driver.end()) return std::nullopt;
  return api::read_visible_devices(at->second, uuids);
}

variable_source within_devices(variable_source own, const std::vector<std::string>& uuids) {
  return [own = std::move(own), list = joined(uuids, ",")](const char* name) -> const char* {
    return name == visible_devices ? list.c_str() : own(name);
  };
}

variable_source within_folder(variable_source own, const std::string& folder, const std::string& compilers) {
  return [own = std::move(own), folder, pocl = compilers + "/pocl",
          compute = compilers + "/compute"](const char* name) -> const char* {
    const std::string_view wanted(name);
    if (wanted == "POCL_CACHE_DIR") return pocl.c_str();
    if (wanted == "CUDA_CACHE_PATH") return compute.c_str();
    if (wanted == "HOME" || wanted == "TMPDIR" || wanted == "XDG_CACHE_HOME") return folder.c_str();
    // Sockets of other services.
    if (wanted == "XDG_RUNTIME_DIR") return nullptr;
    return own(name);
  };
}

variable_source within_folder_but_for_the_driver(const variable_source& own, const std::string& folder) {
  const char* const named = own("CUDA_CACHE_PATH");
  const char* const home = own("HOME");
  std::string cache = folder + "/compute";
  if (named && *named == '/') {
    cache = named;
  } else if (home && *home == '/') {
    cache = std::string(home) + "/.nv/ComputeCache";
  }
  return [inner = within_folder(own, folder, folder), cache = std::move(cache)](const char* name) {
    return std::string_view(name) == "CUDA_CACHE_PATH" ? cache.c_str() : inner(name);
  };
}

variables within_cache_size(variables driver, std::uint64_t most) {
  constexpr std::string_view size = "CUDA_CACHE_MAXSIZE";
  most = std::min<std::uint64_t>(most, UINT32_MAX);  // more means nothing to NVIDIA's driver
  for (auto& [name, value] : driver) {
    if (name != size) continue;
    std::uint64_t asked = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), asked);
    if (problem != std::errc() || end != value.data() + value.size() || asked > most)
      value = std::to_string(most);
    return driver;
  }
  driver.emplace_back(size, std::to_string(most));
  return driver;
}

std::string key_of(const variables& driver) {
  std::string key;
  for (const auto& [name, value] : driver) key.append(name).append("=").append(value).push_back('\0');
  return key;
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
