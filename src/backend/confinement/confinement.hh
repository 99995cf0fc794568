// What a worker does to itself before it looks at a request of a client, whose programs it carries out: it
// keeps the files, devices and system calls that drivers and compilers need, a folder of its own, and the
// connections that it was given. The gate, which reads strangers' TLS, keeps still less. For the thread that
// is alone in its process; what it starts has no more.
#pragma once

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

}  // namespace outboard::backend
