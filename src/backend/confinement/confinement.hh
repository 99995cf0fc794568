// What a worker does to itself before it looks at a request of a client, whose programs it carries out: it
// keeps the files, devices and system calls that drivers and compilers need, a folder of its own, and the
// connections that it was given. The gate, which reads strangers' TLS, and the daemon's helpers keep still
// less. For the thread that is alone in its process; what it starts has no more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/configuration/config.hh"
#include "base/result.hh"

namespace outboard::backend {

struct confinement_terms {
  /// All that may be written beside what drivers need; the first becomes the working folder.
  std::vector<std::string> folders;
  /// What may be read beyond that.
  std::vector<std::string> reads = {};
  /// CUDA's driver is to work in it: what that needs is open, too (places_of_cuda(), filtered::driver).
  bool cuda_driver = false;
  /// Nothing but our own code works in it: CUDA without a driver (filtered::cpu_worker).
  bool own_code_alone = false;
};

/// On what a session's programs run.
struct session_kind {
  std::string_view device;  ///< "vendor", "cpu", "mock"
  bool cuda = true;         ///< false: OpenCL
  /// CUDA kernels reach all memory of their worker (HMM, ATS): nothing else stands between them and it.
  bool reaches_all_memory = false;
};

/// Whether such a session is refused that could not be confined wholly.
bool must_confine(confine_choice choice, const session_kind& kind);

/// Whether this kernel can do what it takes.
bool can_be_served(confine_choice choice, const session_kind& kind);

/// The sentence for who is refused: "`who` cannot be confined here (...; "try" `does`): this kernel lacks
/// ...".
std::string unconfinable(std::string_view who, confine_choice choice, std::string_view does,
                         const std::string& lacks);

/// Logs what holds and what does not, of CUDA sessions of this kind and OpenCL's.
void tell_of_confinement(confine_choice choice, const session_kind& cuda);

/// What this kernel cannot do of it: "", or words for a sentence.
std::string confinement_lacks();

/// What it does: words for the log. "" where it can do nothing.
std::string confinement_has();

/// For good. Done as far as confinement_lacks() says; an error is anything else that fails.
status confine_this_process(const confinement_terms& terms,
                            const std::function<const char*(const char*)>& variable);

/// The same for the gate (backend/gate/gate.hh), which has all that it needs: it opens no file but time
/// zones, starts no process, makes no connection and no listener. It accepts from those that it is given.
status confine_the_gate();

/// What works for the daemon beside its workers, and runs nothing of a client's.
enum class helper_kind : std::uint8_t {
  nvml,        ///< answers NVML (backend/nvml/helper.hh)
  checkpoint,  ///< has CUDA's driver look into one worker (checkpoint_helper.hh)
  remover,     ///< removes sessions' folders; ends what workers have started where the daemon has died
  tidier,      ///< looks after the cache of compilers
};
std::string_view name(helper_kind kind);

struct helper_terms {
  helper_kind kind{};
  bool vendor = false;                  ///< of `nvml`: NVIDIA's library works in it
  std::vector<std::string> reads = {};  ///< of `nvml`: what may be read beyond what that needs
  std::string folder = {};              ///< of `remover` and `tidier`: in which they list and remove
  pid_t worker = -1;                    ///< of `checkpoint`
};

/// Why there may be none: a sentence; "": there may. They run nothing of a client's, so "auto" is as "try".
std::string why_no_helper(confine_choice choice, helper_kind kind);

/// With this exit status a helper ends that could not confine itself.
inline constexpr int exit_unconfined = 3;

/// For good, before the helper has read anything of anybody. Done as far as the kernel can; the log has what
/// holds, or what is lacking with its cure. False: something else has failed, which the log has too, and the
/// helper must not go on.
bool confine_a_helper(const helper_terms& terms, const std::function<const char*(const char*)>& variable);

}  // namespace outboard::backend
