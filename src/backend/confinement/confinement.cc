#include "backend/confinement/confinement.hh"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
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

const std::string root_folder = "/";

status lock_files(int version, const confinement& how,
                  const std::function<const char*(const char*)>& variable) {
  auto rules = file_rules::make(version);
  if (!rules.ok()) return std::move(rules).error();
  for (const place& each : places_of(how.by, variable)) OUTBOARD_TRY(rules->allow(each.path, each.what));
  // Tools that report where a fault happened read our own file.
  if (how.by != executor::gate) OUTBOARD_TRY(rules->allow("/proc/self/exe", permission::read));
  // A driver writes core dumps into a pipe of ours there (core_dump.cc).
  const permission own = how.by == executor::driver ? permission::change_and_pipes : permission::change;
  if (!how.folder.empty()) OUTBOARD_TRY(rules->allow(how.folder, own));
  for (const std::string& folder : how.kept) OUTBOARD_TRY(rules->allow(folder, permission::change));
  return rules->enforce();
}

/// Landlock restricts only the thread that asks for it, and its descendants.
status is_alone() {
  std::error_code failed;
  const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task", failed), {});
  if (threads == 1 || under_tsan) return {};  // TSan has a thread of its own
  return failure(fmt::format(
      "this process has {} threads already, and can be confined with one only; does a plug-in start "
      "threads?",
      threads));
}

/// If the daemon runs as root, its workers start with all of root's rights.
status give_up_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  const std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  if (::syscall(SYS_capset, &header, none.data()) != 0)
    return failure(fmt::format("capset: {}", errno_text(errno)));
  return {};
}

}  // namespace

std::string confinement_lacks() {
  std::string lacks;
  if (landlock_version() == 0) lacks = "Landlock, which would lock the files of this host";
  if (!system_calls_can_be_refused())
    lacks += fmt::format("{}seccomp's filters", lacks.empty() ? "" : ", and ");
  return lacks;
}

std::string confinement_here() {
  const int version = landlock_version();
  std::string here = version > 0 ? fmt::format("Landlock {}", version) : "";
  if (system_calls_can_be_refused()) here += here.empty() ? "seccomp" : ", seccomp";
  return here.empty() ? "nothing" : here;
}

status confine_this_process(const confinement& how, const std::function<const char*(const char*)>& variable) {
  OUTBOARD_TRY(is_alone());
  const std::string& folder = how.folder.empty() ? root_folder : how.folder;
  if (::chdir(folder.c_str()) != 0)
    return failure(fmt::format("cannot enter {}: {}", folder, errno_text(errno)));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return failure(fmt::format("PR_SET_NO_NEW_PRIVS: {}", errno_text(errno)));
  // The rule for /proc/self applies to the folder that the kernel has in memory, which stays there while it
  // is open.
  static const unique_fd own_folder(::open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (const int version = landlock_version(); version > 0) OUTBOARD_TRY(lock_files(version, how, variable));
  OUTBOARD_TRY(give_up_capabilities());
  if (!system_calls_can_be_refused()) return {};
  return refuse_system_calls({.by = how.by,
                              .connections = how.by == executor::driver && uses_mps(variable),
                              .log = how.log_refusals});
}

}  // namespace outboard::backend
