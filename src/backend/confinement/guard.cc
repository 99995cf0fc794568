#include "backend/confinement/guard.hh"

#include <errno.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <string>

#include "base/errno_text.hh"
#include "base/fd.hh"
#include "base/log.hh"

namespace outboard::backend {
namespace {

bool tell_the_kernel(int score) {
  const std::string text = std::to_string(score);
  const unique_fd file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

void guard_this_process(int out_of_memory_score, looked_into_by who) {
  // First, because the files in /proc of a process that is not dumpable belong to root.
  if (out_of_memory_score != 0 && !tell_the_kernel(out_of_memory_score))
    log::debug("oom_score_adj: ", errno_text(errno));
  constexpr rlimit none{0, 0};
  if (::setrlimit(RLIMIT_CORE, &none) != 0) log::warn("core files are not prevented: ", errno_text(errno));
  // A core file that the system hands to a program has no limit; this prevents it, too. LeakSanitizer undoes
  // it for as long as it looks for leaks.
  if (who == looked_into_by::root && ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    log::warn("other processes of this user can read this one: ", errno_text(errno));
}

}  // namespace outboard::backend
