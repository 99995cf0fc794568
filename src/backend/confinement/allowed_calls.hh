// The system calls that processes make whose code is all ours: what is on none of these lists fails with
// ENOSYS (system_calls.hh). Made from what the whole test suite was seen to call under strace, and from what
// other C libraries and kernels call for the same. docs/threat-model.md has the lists. Values; any thread.
#pragma once

#include <string_view>
#include <vector>

#include "backend/confinement/system_calls.hh"

namespace outboard::backend {

struct allowed_call {
  int number;
  std::string_view name;
};

/// All that this process may call, whatever the arguments or with some of them (system_calls.cc). Empty:
/// there is no such list, because a driver or a compiler works in it.
std::vector<allowed_call> allowed_calls(filtered who);

}  // namespace outboard::backend
