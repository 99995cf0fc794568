#include "backend/daemon/compiler_caches.hh"

#include <sys/prctl.h>

#include <fmt/format.h>

#include <filesystem>

#include "backend/confinement/confinement.hh"
#include "backend/confinement/places.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

namespace fs = std::filesystem;

/// Sessions that end shortly after each other share one check of the folders, and checks take at most a
/// twentieth of a processor's time.
constexpr std::chrono::seconds least_pause{1};
constexpr int pause_of_work = 20;

/// Returns a place that every confined worker may read and that contains `folder`; or "".
std::string place_around(const std::string& folder, const variable_source& variable) {
  std::error_code failed;
  const fs::path inner = fs::weakly_canonical(folder, failed);
  for (const place& each : places_of(executor::platforms, variable)) {
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

std::optional<cache_lease> compiler_caches::lease(const accepted_session& session,
                                                  const variable_source& variable) {
  if (most_of_one() == 0) return std::nullopt;
  if (!is_known(session.identity)) {
    log::debug("what compilers keep for ", session.from,
               " goes with its session: the client could be anybody");
    return std::nullopt;
  }
  if (const std::string lacks = confinement_lacks(); !lacks.empty())
    return without(fmt::format("nothing keeps sessions out of each other's folders without {}", lacks));
  if (settings_.directory.empty()) return without("no folder for it is known; set compiler_cache.directory");
  if (!around_) around_ = place_around(settings_.directory, variable);
  if (!around_->empty())
    return without(fmt::format("{} lies in {}, which every session may read", settings_.directory, *around_));
  auto lease = lease_compiler_cache(settings_, session.images.scope);
  if (!std::exchange(looked_, true)) tidy_soon();  // a daemon with other limits may have left folders here
  if (lease.ok()) return std::move(*lease);
  if (lease.error().next != action::retry) return without(lease.error().message);
  log::debug("no compiler cache for ", session.from, ": ", lease.error().message);
  return std::nullopt;
}

std::optional<cache_lease> compiler_caches::without(const std::string& why) {
  if (std::exchange(reported_, why) != why)
    log::warn("no compiler cache: ", why, "; what OpenCL's compilers keep goes with its session");
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
  if (!started.ok()) return log::warn("the compiler cache is not tidied: ", started.error().message);
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

int run_cache_tidier(pid_t parent, const compiler_cache_settings& settings) {
  if (const status tied = die_with_parent(parent); !tied.ok()) return 1;
  ::prctl(PR_SET_NAME, "outboard-tidier");
  const status done = tidy_compiler_cache(settings);
  if (!done.ok()) log::warn("compiler cache ", settings.directory, ": ", done.error().message);
  return done.ok() ? 0 : 1;
}

}  // namespace outboard::backend
