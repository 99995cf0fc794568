// What OpenCL's compilers keep on disk for the next session of the same identity. It is code: a process that
// may write it can make all its readers execute something. So each identity has folders of its own, in which
// only the confined workers of its sessions write.
//
//   directory/NAME/NUMBER/pocl, .../compute    NAME follows from the identity; new sessions use the highest
//                                              NUMBER
//   directory/.gone/                           what is being removed
//
// Workers can reach the innermost folders only. A session holds a lock (flock) on its NUMBER; a locked folder
// is surveyed, but not changed. Shared by all daemons that use one directory. Free functions, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "backend/disk/image_terms.hh"
#include "base/config.hh"
#include "base/fd.hh"

namespace outboard::backend {

/// The folders of the two compilers that we know, PoCL's and NVIDIA's.
struct kept_kind {
  const char* name;
  /// Where survey.hh finds units: PoCL keeps a folder for each program two levels deep. NVIDIA's cache has an
  /// index, so it is one unit (0).
  int levels;
};
inline constexpr std::array<kept_kind, 2> kept_kinds{{{"pocl", 2}, {"compute", 0}}};

/// Held while a session of the identity runs.
struct cache_lease {
  std::string folder;  ///< has a folder for each of kept_kinds
  unique_fd lock;
};

/// Returns the folder for a session of this scope. An error says why the session has none: with action::retry
/// it is just being removed, otherwise the operator has to mend something.
result<cache_lease> lease_compiler_cache(const compiler_cache_settings& settings, const image_scope& scope);

/// Surveys all folders and removes what exceeds the limits, the least recently used first. It removes
/// programs of identities without a session. An identity with sessions loses nothing, but its later sessions
/// begin with an empty folder. May take long. Does nothing while another process does this.
status tidy_compiler_cache(const compiler_cache_settings& settings);

}  // namespace outboard::backend
