#include "forked_run.hh"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "base/check.hh"

// The compiler's counters of -fsanitize=fuzzer: libFuzzer clears them before each input and reads them after
// it. This file is compiled without them (CMakeLists.txt), because the compiler declares the same names where
// it counts.
extern "C" {
extern std::uint8_t __start___sancov_cntrs[] __attribute__((visibility("hidden")));
extern std::uint8_t __stop___sancov_cntrs[] __attribute__((visibility("hidden")));
}

namespace outboard::fuzz {

void run_forked(const std::function<void()>& body) {
  std::uint8_t* const own = __start___sancov_cntrs;
  const auto size = static_cast<std::size_t>(__stop___sancov_cntrs - own);
  static auto* const childs = static_cast<std::uint8_t*>(
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  CHECK(childs != MAP_FAILED);
  const pid_t parent = ::getpid(), child = ::fork();
  CHECK(child >= 0);
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(0);
    body();
    for (std::size_t i = 0; i < size; ++i) childs[i] = own[i];
    ::_exit(0);
  }
  int state = 0;
  while (::waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  // The child has told what it died of.
  if (!WIFEXITED(state) || WEXITSTATUS(state) != 0) std::abort();
  for (std::size_t i = 0; i < size; ++i)
    if (childs[i] != 0) own[i] = childs[i];
}

}  // namespace outboard::fuzz
