#include "device/vendor/library_search.hh"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "device/vendor/loader_cache.hh"

namespace outboard::device::vendor {

std::vector<std::string> find_library(std::string_view soname, std::span<const char* const> folders) {
  const auto in = [&](std::string_view folder) { return std::string(folder).append("/").append(soname); };
  std::vector<std::string> tried;
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    std::string_view rest = path;
    while (!rest.empty()) {
      const std::string_view folder = rest.substr(0, rest.find(':'));
      rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
      if (!folder.empty()) tried.push_back(in(folder));
    }
  }
  for (std::string& path : loader_cache_paths(soname)) tried.push_back(std::move(path));
  for (const char* folder : folders) tried.push_back(in(folder));
  std::vector<std::string> existing;
  for (const std::string& path : tried) {
    std::error_code failed;
    std::string real = std::filesystem::canonical(path, failed).string();
    if (failed || std::ranges::find(existing, real) != existing.end()) continue;
    existing.push_back(std::move(real));
  }
  return existing;
}

}  // namespace outboard::device::vendor
