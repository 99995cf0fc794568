// Where the driver and the compilers of a worker keep what they have made, and how much. A part of
// workers.hh.
#include <algorithm>

#include "backend/daemon/workers/worker_record.hh"
#include "base/hex.hh"

namespace outboard::backend {
namespace {

constexpr std::string_view cache_size = "CUDA_CACHE_MAXSIZE";

/// What NVIDIA's driver keeps at most where nobody says anything.
constexpr std::uint64_t usual_cache_size = 1ull << 30;

}  // namespace

/// Compiled code is code: whoever may write it gives it to all who read it, and how soon it is there tells
/// who had it compiled. So identities share none. Where all are one, CUDA's driver keeps it where it would
/// without us.
std::optional<cache_owner> workers::owner_of_cache(const accepted_session& session, bool cuda) const {
  const bool for_all = cuda && (settings_.device != "vendor" || !several_);
  if (for_all || settings_.confine == confine_choice::off) return std::nullopt;
  return cache_owner{session.identity, session.images.scope, session.from};
}

/// Of warm workers: one that can read what an identity keeps serves no other.
std::string workers::key_of(const variables& driver, const std::optional<cache_owner>& owner) {
  std::string key = backend::key_of(driver);
  if (owner) key += "\n" + hex(owner->scope);
  return key;
}

/// A client chooses how much the driver keeps on this machine's disk only within limits.
variables workers::within_limits(const worker& w, variables driver) const {
  const std::uint64_t most = compiler_caches_.most_of_one();
  // The rest is for other compilers.
  if (w.kept) return within_cache_size(std::move(driver), most / 2);
  if (std::ranges::find(driver, cache_size, &variables::value_type::first) == driver.end()) return driver;
  return within_cache_size(std::move(driver), most == 0 ? usual_cache_size : most);
}

std::vector<std::string> workers::environment_of(const worker& w, const variables& driver) const {
  const variable_source& own = settings_.own_environment;
  const variables chosen = within_limits(w, driver);
  if (w.folder.empty()) return worker_environment(chosen, own);
  if (w.cuda && !w.owner) return worker_environment(chosen, within_folder_but_for_the_driver(own, w.folder));
  return worker_environment(chosen, within_folder(own, w.folder, w.kept ? w.kept->folder : w.folder));
}

}  // namespace outboard::backend
