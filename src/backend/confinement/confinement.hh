// What a worker does to itself before it looks at a request of a client that brings code of its own: it keeps
// the files, devices and system calls that drivers and compilers need, a folder of its own, and the
// connections that it was given. The gate, which reads strangers' TLS, keeps still less. For the thread that
// is alone in its process; what it starts has no more.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "base/result.hh"

namespace outboard::backend {

/// What this kernel cannot do of it: "", or words for a sentence.
std::string confinement_lacks();

/// For good. `folders` are all that may be written; the first becomes the working folder. Done as far as
/// confinement_lacks() says; an error is anything else that fails.
status confine_this_process(std::span<const std::string> folders,
                            const std::function<const char*(const char*)>& variable);

/// The same for the gate (backend/gate.hh), which has all that it needs: it opens no file but time zones,
/// starts no process, makes no connection and no listener. It accepts from those that it is given.
status confine_the_gate();

}  // namespace outboard::backend
