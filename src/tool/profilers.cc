#include "tool/profilers.hh"

#include <stdlib.h>
#include <unistd.h>

#include <string_view>
#include <vector>

#include "base/joined.hh"
#include "base/log.hh"

namespace outboard::tool {
namespace {

/// Ours; empty: this build has none.
std::string our_cupti(const std::string& libraries, const char* version) {
  const std::string path = libraries + "/libcupti.so." + version;
  return ::access(path.c_str(), R_OK) == 0 ? path : std::string();
}

/// Programs name the folder of NVIDIA's CUPTI in themselves, and that counts before LD_LIBRARY_PATH: ours are
/// there before, so that whoever wants a library of this name gets them.
void preload_cupti(const std::string& libraries) {
  std::vector<std::string> list;
  if (const char* old = ::getenv("LD_PRELOAD"); old && *old) list.emplace_back(old);
  for (const char* version : {"13", "12"}) {
    // Both characters end a name in the list.
    const std::string path = our_cupti(libraries, version);
    if (!path.empty() && path.find_first_of(": ") == path.npos) list.push_back(path);
  }
  if (!list.empty()) ::setenv("LD_PRELOAD", joined(list, ":").c_str(), 1);
}

/// NVTX's header loads what this variable names, at the program's first range. Where it names NVIDIA's
/// libcupti, ours is meant, as with preload_cupti(); a tool of another name is the program's own business.
void inject_nvtx(const std::string& libraries, bool inside, bool profile) {
  constexpr const char* variable = "NVTX_INJECTION64_PATH";
  const std::string ours = our_cupti(libraries, "13");
  if (ours.empty()) return;
  const char* const named = ::getenv(variable);
  if (!named || !*named) {
    if (profile) ::setenv(variable, ours.c_str(), 1);
    return;
  }
  const std::string_view path = named;
  const std::string_view file = path.substr(path.rfind('/') + 1);  // npos + 1: the whole
  if (!file.starts_with("libcupti.so")) {
    if (profile) log::error(variable, " names ", path, ": the profile will have no NVTX ranges");
  } else if (profile || inside) {
    ::setenv(variable, ours.c_str(), 1);
  }
}

}  // namespace

void give_profilers(const std::string& libraries, bool inside, bool profile) {
  if (inside) preload_cupti(libraries);
  inject_nvtx(libraries, inside, profile);
}

}  // namespace outboard::tool
