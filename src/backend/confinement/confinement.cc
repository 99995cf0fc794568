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

status lock_files(int version, std::span<const place> places, bool mps) {
  auto rules = file_rules::make(version, mps);
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

filtered kind_of(const confinement_terms& terms, const std::function<const char*(const char*)>& variable) {
  if (!terms.cuda_driver) return filtered::worker;
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

/// A daemon that is root's has workers with all of root's rights. What programs that they start could have is
/// given up first, because that is a right as well.
status give_up_capabilities(bool cuda_driver) {
  constexpr unsigned most = 64;
  for (unsigned each = 0; each < most && ::prctl(PR_CAPBSET_READ, each, 0, 0, 0) >= 0; ++each)
    (void)::prctl(PR_CAPBSET_DROP, each, 0, 0, 0);  // refused to who has none
  (void)::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> held{}, kept{};
  if (::syscall(SYS_capget, &header, held.data()) != 0) return failure("capget: " + errno_text(errno));
  if (cuda_driver) {
    const std::uint32_t counters = held[perfmon / 32].permitted & (1u << (perfmon % 32));
    kept[perfmon / 32] = {.effective = counters, .permitted = counters, .inheritable = 0};
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
  if (choice == confine_choice::off) return log::info("workers are not confined (worker.confine is \"off\")");
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

status confine(const std::string& folder, std::span<const place> places, filtered who) {
  OUTBOARD_TRY(is_alone());
  if (::chdir(folder.c_str()) != 0) return failure("chdir " + folder + ": " + errno_text(errno));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return failure("PR_SET_NO_NEW_PRIVS: " + errno_text(errno));
  // The rule for /proc/self holds for the folder that the kernel has in memory; it stays there while it is
  // open.
  static const unique_fd own_folder(::open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (const int version = landlock_version(); version > 0)
    OUTBOARD_TRY(lock_files(version, places, who == filtered::driver_with_mps));
  OUTBOARD_TRY(give_up_capabilities(has_a_driver(who)));
  if (system_calls_can_be_refused()) OUTBOARD_TRY(refuse_system_calls(who, log::enabled(log::level::debug)));
  return {};
}

}  // namespace

status confine_this_process(const confinement_terms& terms,
                            const std::function<const char*(const char*)>& variable) {
  return confine(terms.folders.front(), places_of_worker(terms, variable), kind_of(terms, variable));
}

status confine_the_gate() { return confine("/", places_of_the_gate(), filtered::gate); }

}  // namespace outboard::backend
