#include "backend/confinement/confinement.hh"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <iterator>

#include "backend/confinement/landlock.hh"
#include "backend/confinement/places.hh"
#include "backend/confinement/system_calls.hh"
#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/sanitizers.hh"

namespace outboard::backend {
namespace {

status lock_files(int version, std::span<const place> places) {
  auto rules = file_rules::make(version);
  if (!rules.ok()) return std::move(rules).error();
  for (const place& each : places) OUTBOARD_TRY(rules->allow(each.path, each.what));
  return rules->enforce();
}

/// What it may reach of a worker's files.
std::vector<place> places_of_worker(std::span<const std::string> folders,
                                    const std::function<const char*(const char*)>& variable) {
  std::vector<place> places = places_of_drivers(variable);
  // What says of a fault where it was.
  places.push_back({"/proc/self/exe"});
  for (const std::string& folder : folders) places.push_back({folder, permission::change});
  return places;
}

/// Landlock is for the thread that asks for it and its descendants.
status is_alone() {
  std::error_code failed;
  const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task", failed), {});
  if (threads == 1 || under_tsan) return {};  // whose own thread is always there
  return failure("it has " + std::to_string(threads) + " threads already; does a plug-in start some?");
}

/// A daemon that is root's has workers with all of root's rights.
status give_up_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0) return failure("capset: " + errno_text(errno));
  return {};
}

}  // namespace

std::string confinement_lacks() {
  std::string lacks;
  if (landlock_version() == 0) lacks = "Landlock, which would lock the files of this host";
  if (!system_calls_can_be_refused())
    lacks += (lacks.empty() ? "" : ", and ") + std::string("seccomp's filters");
  return lacks;
}

namespace {

status confine(const std::string& folder, std::span<const place> places, filtered who) {
  OUTBOARD_TRY(is_alone());
  if (::chdir(folder.c_str()) != 0) return failure("chdir " + folder + ": " + errno_text(errno));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return failure("PR_SET_NO_NEW_PRIVS: " + errno_text(errno));
  // The rule for /proc/self holds for the folder that the kernel has in memory; it stays there while it is
  // open.
  static const unique_fd own_folder(::open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (const int version = landlock_version(); version > 0) OUTBOARD_TRY(lock_files(version, places));
  OUTBOARD_TRY(give_up_capabilities());
  if (system_calls_can_be_refused()) OUTBOARD_TRY(refuse_system_calls(who));
  return {};
}

}  // namespace

status confine_this_process(std::span<const std::string> folders,
                            const std::function<const char*(const char*)>& variable) {
  return confine(folders.front(), places_of_worker(folders, variable), filtered::worker);
}

status confine_the_gate() { return confine("/", places_of_the_gate(), filtered::gate); }

}  // namespace outboard::backend
