#include "backend/daemon/worker_environment.hh"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "api/cuda/visible_devices.hh"
#include "marshal/cuda/driver_variables.hh"

namespace outboard::backend {
namespace {

constexpr std::string_view visible_devices = "CUDA_VISIBLE_DEVICES";

/// What a process and the driver need to know of the host: paths, locale, the operator's choices. No secrets.
constexpr std::array<std::string_view, 24> base_variables{
    "ASAN_OPTIONS",
    "CUDA_CACHE_MAXSIZE",
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
  // By UUID, because the meaning of an index depends on the client's CUDA_DEVICE_ORDER.
  std::vector<std::string> list;
  if (!client) {
    list.assign(uuids.begin(), uuids.end());
  } else {
    // A device that is named twice stays so, because the driver then refuses the list.
    for (const std::size_t ordinal : api::read_visible_devices(*client, uuids).ordinals)
      list.push_back(uuids[ordinal]);
  }
  return list.empty() ? "-1" : fmt::format("{}", fmt::join(list, ","));
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

bool names_device_twice(const variables& driver, std::span<const std::string> uuids) {
  return std::any_of(driver.begin(), driver.end(), [&](const auto& variable) {
    return variable.first == visible_devices && api::read_visible_devices(variable.second, uuids).twice;
  });
}

variable_source lending(variable_source own, std::span<const std::string> uuids) {
  return [own = std::move(own),
          list = fmt::format("{}", fmt::join(uuids, ","))](const char* name) -> const char* {
    return std::string_view(name) == "CUDA_VISIBLE_DEVICES" ? list.c_str() : own(name);
  };
}

variable_source within_folder(variable_source own, const std::string& folder, const std::string& compilers) {
  return [own = std::move(own), folder, pocl = fmt::format("{}/pocl", compilers),
          compute = fmt::format("{}/compute", compilers)](const char* name) -> const char* {
    const std::string_view wanted(name);
    if (wanted == "POCL_CACHE_DIR") return pocl.c_str();
    if (wanted == "CUDA_CACHE_PATH") return compute.c_str();
    if (wanted == "HOME" || wanted == "TMPDIR" || wanted == "XDG_CACHE_HOME") return folder.c_str();
    // It leads to sockets of other services.
    if (wanted == "XDG_RUNTIME_DIR") return nullptr;
    return own(name);
  };
}

variable_source within_folder(variable_source own, const std::string& folder) {
  const char* const named = own("CUDA_CACHE_PATH");
  const char* const home = own("HOME");
  std::string compute;
  if (named && *named) {
    compute = named;
  } else if (home && home[0] == '/') {
    compute = fmt::format("{}/.nv/ComputeCache", home);  // where the driver keeps it by default
  }
  return [inner = within_folder(std::move(own), folder, folder),
          compute = std::move(compute)](const char* name) -> const char* {
    const bool is_cache = std::string_view(name) == "CUDA_CACHE_PATH" && !compute.empty();
    return is_cache ? compute.c_str() : inner(name);
  };
}

variables without_cache_size(variables driver) {
  std::erase_if(driver, [](const auto& variable) { return variable.first == "CUDA_CACHE_MAXSIZE"; });
  return driver;
}

variables within_cache_size(variables driver, std::uint64_t most) {
  constexpr std::string_view size = "CUDA_CACHE_MAXSIZE";
  most = std::min<std::uint64_t>(most, UINT32_MAX);  // NVIDIA's driver takes no larger number
  for (auto& [name, value] : driver) {
    if (name != size) continue;
    std::uint64_t asked = 0;
    const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), asked);
    if (problem != std::errc() || end != value.data() + value.size() || asked > most)
      value = fmt::to_string(most);
    return driver;
  }
  driver.emplace_back(size, fmt::to_string(most));
  return driver;
}

std::vector<std::string> worker_environment(const variables& driver, const variable_source& own) {
  std::vector<std::string> lines;
  for (const std::string_view name : base_variables) {
    // A client's value that counts at all comes before the operator's.
    if (std::ranges::find(driver, name, &variables::value_type::first) != driver.end()) continue;
    const char* value = own(name.data());
    if (value) lines.push_back(fmt::format("{}={}", name, value));
  }
  for (const auto& [name, value] : driver) lines.push_back(fmt::format("{}={}", name, value));
  return lines;
}

}  // namespace outboard::backend
