#include "backend/confinement/confinement.hh"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <span>

#include "backend/confinement/landlock.hh"
#include "backend/confinement/places.hh"
#include "backend/confinement/system_calls.hh"
#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/log.hh"
#include "base/sanitizers.hh"

namespace outboard::backend {
namespace {

status lock_files(int version, std::span<const place> places, open_scopes open) {
  auto rules = file_rules::make(version, open);
  if (!rules.ok()) return std::move(rules).error();
  for (const place& each : places) OUTBOARD_TRY(rules->allow(each.path, each.what));
  return rules->enforce();
}

/// What a worker may reach of files.
std::vector<place> places_of_worker(const confinement_terms& terms,
                                    const std::function<const char*(const char*)>& variable) {
  std::vector<place> places = places_of_drivers(variable);
  if (terms.cuda_driver) std::ranges::copy(places_of_cuda(variable), std::back_inserter(places));
  // What says of a fault where it was.
  places.push_back({"/proc/self/exe"});
  for (const std::string& path : terms.reads) places.push_back({path});
  for (const std::string& folder : terms.folders) places.push_back({folder, permission::change});
  return places;
}

filtered filter_of(const confinement_terms& terms, const std::function<const char*(const char*)>& variable) {
  if (!terms.cuda_driver) return terms.own_code_alone ? filtered::cpu_worker : filtered::worker;
  return folder_of_mps(variable).empty() ? filtered::driver : filtered::driver_with_mps;
}

/// Landlock is for the thread that asks for it and its descendants.
status is_alone() {
  std::error_code failed;
  const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task", failed), {});
  if (threads == 1 || under_tsan) return {};  // whose own thread is always there
  return failure("it has " + std::to_string(threads) + " threads already; does a plug-in start some?");
}

/// Performance counters of a board, which CUPTI reads, are its administrator's by default: NVIDIA's module
/// asks for this one. The kernel's own counters are refused by the filter.
constexpr unsigned perfmon = 38;  // CAP_PERFMON, Linux 5.8

/// Only with this one a process of root's looks into a worker, which is not dumpable there.
constexpr unsigned look_into = CAP_SYS_PTRACE;

std::vector<unsigned> kept_by(filtered who) {
  if (who == filtered::checkpoint) return {perfmon, look_into};
  if (has_a_driver(who)) return {perfmon};
  return {};
}

/// A daemon that is root's has workers with all of root's rights. What programs that they start could have is
/// given up first, because that is a right as well.
status give_up_capabilities(std::span<const unsigned> keeps) {
  constexpr unsigned most = 64;
  for (unsigned each = 0; each < most && ::prctl(PR_CAPBSET_READ, each, 0, 0, 0) >= 0; ++each)
    (void)::prctl(PR_CAPBSET_DROP, each, 0, 0, 0);  // refused to who has none
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> held{}, kept{};
  if (::syscall(SYS_capget, &header, held.data()) != 0) return failure("capget: " + errno_text(errno));
  for (const unsigned each : keeps) {
    const std::uint32_t bit = held[each / 32].permitted & (1u << (each % 32));
    kept[each / 32].effective |= bit;
    kept[each / 32].permitted |= bit;
  }
  if (::syscall(SYS_capset, &header, kept.data()) != 0) return failure("capset: " + errno_text(errno));
  return {};
}

}  // namespace

bool must_confine(confine_choice choice, const session_kind& kind) {
  if (choice == confine_choice::automatic)
    return kind.cuda && (kind.device == "cpu" || kind.reaches_all_memory);
  return choice == confine_choice::required;
}

std::string unconfinable(std::string_view who, confine_choice choice, std::string_view does,
                         const std::string& lacks) {
  return std::string(who) + " cannot be confined here (worker.confine is \"" + std::string(name(choice)) +
         "\"; \"try\" " + std::string(does) + "): this kernel lacks " + lacks;
}

bool can_be_served(confine_choice choice, const session_kind& kind) {
  return !must_confine(choice, kind) || confinement_lacks().empty();
}

void tell_of_confinement(confine_choice choice, const session_kind& cuda) {
  const bool as_far_as_it_goes = choice == confine_choice::off || !confinement_lacks().empty();
  if (cuda.reaches_all_memory && as_far_as_it_goes) {
    log::warn(
        "kernels on this GPU read and write all memory of their worker (HMM or ATS), so a client's code can "
        "take "
        "it over; worker.confine = \"require\" serves nobody unconfined, and where the driver has HMM, "
        "`options "
        "nvidia-uvm uvm_disable_hmm=1` for its module switches that off");
  }
  if (choice == confine_choice::off)
    return log::info("workers are not confined (worker.confine is \"off\"), nor are the daemon's helpers");
  const std::string lacks = confinement_lacks(), has = confinement_has();
  if (lacks.empty()) return log::info("workers are confined: ", has);
  std::string refused;
  if (!can_be_served(choice, cuda)) refused = "CUDA";
  if (!can_be_served(choice, {.device = cuda.device, .cuda = false}))
    refused += refused.empty() ? "OpenCL" : " and OpenCL";
  if (!refused.empty()) refused = "; refused are sessions of " + refused;
  log::warn("workers are not wholly confined: this kernel lacks ", lacks, refused);
}

std::string confinement_lacks() {
  std::string lacks;
  if (landlock_version() == 0) lacks = "Landlock, which would lock the files of this host";
  if (!system_calls_can_be_refused())
    lacks += (lacks.empty() ? "" : ", and ") + std::string("seccomp's filters");
  return lacks;
}

std::string confinement_has() {
  std::string has;
  if (const int version = landlock_version(); version > 0)
    has = "Landlock (version " + std::to_string(version) + ") locks files";
  if (system_calls_can_be_refused()) has += (has.empty() ? "" : ", ") + std::string("seccomp system calls");
  return has;
}

namespace {

struct confines {
  std::string folder;  ///< where it works
  std::vector<place> places;
  filtered who;
  bool locks_files = true;
  pid_t other = -1;  ///< into which it may look
};

status confine(const confines& c) {
  OUTBOARD_TRY(is_alone());
  if (::chdir(c.folder.c_str()) != 0) return failure("chdir " + c.folder + ": " + errno_text(errno));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return failure("PR_SET_NO_NEW_PRIVS: " + errno_text(errno));
  // The rule for /proc/self holds for the folder that the kernel has in memory; it stays there while it is
  // open.
  static const unique_fd own_folder(::open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (const int version = landlock_version(); version > 0 && c.locks_files) {
    OUTBOARD_TRY(lock_files(
        version, c.places,
        {.local_sockets = c.who == filtered::driver_with_mps, .signals = c.who == filtered::remover}));
  }
  OUTBOARD_TRY(give_up_capabilities(kept_by(c.who)));
  if (system_calls_can_be_refused())
    OUTBOARD_TRY(refuse_system_calls(c.who, log::enabled(log::level::debug), c.other));
  return {};
}

bool removes(helper_kind kind) { return kind == helper_kind::remover || kind == helper_kind::tidier; }

/// A process that Landlock holds can look into none that it does not hold, whichever files are open to it,
/// and CUDA's driver looks into the worker. Before the second version Landlock lets nobody move a folder into
/// another, which is how removing goes.
bool landlock_holds(helper_kind kind) {
  return kind != helper_kind::checkpoint && landlock_version() >= (removes(kind) ? 2 : 1);
}

std::string lacks_for(helper_kind kind) {
  std::string lacks;
  if (kind != helper_kind::checkpoint && !landlock_holds(kind))
    lacks = removes(kind) ? "the second version of Landlock" : "Landlock";
  if (!system_calls_can_be_refused())
    lacks += (lacks.empty() ? "" : ", and ") + std::string("seccomp's filters");
  return lacks;
}

filtered filter_of(const helper_terms& terms) {
  switch (terms.kind) {
    case helper_kind::nvml:
      return terms.vendor ? filtered::nvml : filtered::helper;
    case helper_kind::checkpoint:
      return filtered::checkpoint;
    case helper_kind::remover:
      return filtered::remover;
    case helper_kind::tidier:
      return filtered::tidier;
  }
  return filtered::helper;
}

std::vector<place> places_of(const helper_terms& terms,
                             const std::function<const char*(const char*)>& variable) {
  const bool library = terms.kind == helper_kind::nvml && terms.vendor;
  std::vector<place> places = library ? places_of_nvml(variable) : places_of_the_gate();
  places.push_back({"/proc/self"});
  for (const std::string& path : terms.reads) places.push_back({path});
  if (!terms.folder.empty()) places.push_back({terms.folder, permission::clear});
  // In the end it removes the folder itself.
  if (terms.kind == helper_kind::remover)
    places.push_back({std::filesystem::path(terms.folder).parent_path(), permission::vanish});
  return places;
}

/// The one for NVML stays, and strangers ask it: an operator should see how it does. Others come and go.
void tell_of(helper_kind kind) {
  const log::level level = kind == helper_kind::nvml ? log::level::info : log::level::debug;
  const std::string lacks = lacks_for(kind);
  if (!lacks.empty()) {
    return log::line(
        kind == helper_kind::nvml ? log::level::warn : level, name(kind),
        " is not wholly confined: this kernel lacks ", lacks,
        "; Linux 5.19 and later have both unless they are switched off (CONFIG_SECURITY_LANDLOCK, "
        "\"landlock\" in the kernel's parameter lsm=, CONFIG_SECCOMP_FILTER)");
  }
  log::line(level, name(kind),
            " is confined: ", landlock_holds(kind) ? confinement_has() : "seccomp system calls");
}

}  // namespace

status confine_this_process(const confinement_terms& terms,
                            const std::function<const char*(const char*)>& variable) {
  return confine({.folder = terms.folders.front(),
                  .places = places_of_worker(terms, variable),
                  .who = filter_of(terms, variable)});
}

status confine_the_gate() {
  return confine({.folder = "/", .places = places_of_the_gate(), .who = filtered::helper});
}

std::string_view name(helper_kind kind) {
  switch (kind) {
    case helper_kind::nvml:
      return "the NVML helper";
    case helper_kind::checkpoint:
      return "the checkpoint helper";
    case helper_kind::remover:
      return "the remover of sessions' folders";
    case helper_kind::tidier:
      return "what looks after the compilers' cache";
  }
  return "a helper";
}

std::string why_no_helper(confine_choice choice, helper_kind kind) {
  const std::string lacks = choice == confine_choice::required ? lacks_for(kind) : "";
  if (lacks.empty()) return {};
  return unconfinable(name(kind), choice, "starts it", lacks);
}

bool confine_a_helper(const helper_terms& terms, const std::function<const char*(const char*)>& variable) {
  const status confined = confine({.folder = "/",
                                   .places = places_of(terms, variable),
                                   .who = filter_of(terms),
                                   .locks_files = landlock_holds(terms.kind),
                                   .other = terms.worker});
  if (!confined.ok()) {
    log::error(name(terms.kind), " cannot be confined: ", confined.error().message);
    return false;
  }
  tell_of(terms.kind);
  return true;
}

}  // namespace outboard::backend
