// What OpenCL's compilers keep on disk for the next session of the same identity. It is code, which whoever
// may write there can give to all who read it: so each identity has folders of its own, in which confined
// workers of its sessions write, and nobody else does.
//
//   directory/NAME/NUMBER/pocl, .../compute    NAME follows from the identity; in the highest NUMBER new
//                                              sessions begin
//   directory/.gone/                           what is being removed
//
// Workers have the innermost folders only, all others are the daemon's. A session holds a lock (flock) on its
// NUMBER; what is locked is not touched but looked at. Shared by all daemons that use one directory. Free
// functions, any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "backend/disk/image_terms.hh"
#include "base/configuration/config.hh"
#include "base/fd.hh"

namespace outboard::backend {

/// The folders of the two compilers that we know, PoCL's and NVIDIA's.
struct kept_kind {
  const char* name;
  /// survey.hh: PoCL keeps a folder for each program two levels deep; of NVIDIA's, which has an index, all or
  /// nothing goes.
  int levels;
};
inline constexpr std::array<kept_kind, 2> kept_kinds{{{"pocl", 2}, {"compute", 0}}};

/// For as long as a session of the identity runs.
struct cache_lease {
  std::string folder;  ///< with a folder for each of kept_kinds in it
  unique_fd lock;
};

/// The folder for a session of this scope. An error says why it has to do without: action::retry: what is in
/// it is just being removed, else something that the operator has to mend.
result<cache_lease> lease_compiler_cache(const compiler_cache_settings& settings, const image_scope& scope);

/// Looks at everything, and removes what is more than the limits, the least recently used first: programs of
/// an identity without a session; of one with sessions nothing, but later ones begin with an empty folder.
/// Takes its time. Does nothing where another process is at it.
status tidy_compiler_cache(const compiler_cache_settings& settings);

}  // namespace outboard::backend
