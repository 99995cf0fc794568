#include "backend/daemon/compiler_caches.hh"

#include <sys/prctl.h>

#include <filesystem>

#include "backend/confinement/confinement.hh"
#include "backend/confinement/places.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

/// Sessions that end one after the other are looked after together, and looking takes no more than a
/// twentieth of a processor.
constexpr std::chrono::seconds least_pause{1};
constexpr int pause_of_work = 20;

/// A place that every confined worker may read, whosoever it is, and in which `folder` lies; or "".
std::string place_around(const std::string& folder, const variable_source& variable) {
  std::error_code failed;
  const fs::path inner = fs::weakly_canonical(folder, failed);
  for (const place& each : places_of_drivers(variable)) {
    const fs::path outer = fs::weakly_canonical(each.path, failed);
    if (std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end())
      return each.path;
  }
  return {};
}

}  // namespace

compiler_caches::compiler_caches(event_loop& loop, compiler_cache_settings settings,
                                 std::function<result<child>()> start_tidier)
    : loop_(loop),
      settings_(std::move(settings)),
      start_tidier_(std::move(start_tidier)),
      pause_(least_pause) {}

std::optional<cache_lease> compiler_caches::lease(const cache_owner& owner, const variable_source& variable) {
  if (most_of_one() == 0) return std::nullopt;
  if (!is_known(owner.identity)) {
    log::debug("what compilers keep of ", owner.from, " goes with its session: it could be anybody");
    return std::nullopt;
  }
  if (const std::string lacks = confinement_lacks(); !lacks.empty())
    return without("nothing keeps sessions out of others' without " + lacks);
  if (settings_.directory.empty()) return without("no folder for it: set compiler_cache.directory");
  if (!around_) around_ = place_around(settings_.directory, variable);
  if (!around_->empty())
    return without(settings_.directory + " lies in " + *around_ + ", which every session may read");
  auto lease = lease_compiler_cache(settings_, owner.scope);
  if (!std::exchange(looked_, true)) tidy_soon();  // what lies there may be of a daemon with other limits
  if (lease.ok()) return std::move(*lease);
  if (lease.error().next != action::retry) return without(lease.error().message);
  log::debug("no compiler cache for ", owner.from, ": ", lease.error().message);
  return std::nullopt;
}

std::optional<cache_lease> compiler_caches::without(const std::string& why) {
  if (std::exchange(told_, why) != why)
    log::warn("no compiler cache: ", why, "; what compilers keep goes with its session");
  return std::nullopt;
}

void compiler_caches::give_back(cache_lease lease) {
  lease.lock.reset();
  tidy_soon();
}

void compiler_caches::tidy_soon() {
  if (tidier_.process > 0) {
    once_more_ = true;
  } else if (timer_ == 0) {
    timer_ = loop_.after(pause_, [this] { tidy(); });
  }
}

void compiler_caches::tidy() {
  timer_ = 0;
  began_ = event_loop::clock::now();
  auto started = start_tidier_();
  if (!started.ok()) return log::warn("the compiler cache is not looked after: ", started.error().message);
  tidier_ = std::move(*started);
}

bool compiler_caches::tidier_ended(pid_t process) {
  if (process != tidier_.process) return false;
  tidier_ = {};
  pause_ =
      std::max<event_loop::clock::duration>(least_pause, pause_of_work * (event_loop::clock::now() - began_));
  if (std::exchange(once_more_, false)) tidy_soon();
  return true;
}

int run_cache_tidier(pid_t parent, const compiler_cache_settings& settings,
                     const std::function<bool()>& confine) {
  if (const status tied = die_with_parent(parent); !tied.ok()) return 1;
  ::prctl(PR_SET_NAME, "outboard-tidier");
  if (confine && !confine()) return 1;
  const status done = tidy_compiler_cache(settings);
  if (!done.ok()) log::warn("compiler cache ", settings.directory, ": ", done.error().message);
  return done.ok() ? 0 : 1;
}

}  // namespace outboard::backend
