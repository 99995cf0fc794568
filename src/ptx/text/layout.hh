// Where things lie: parameters, stack frames, shared memory. Pure functions of the syntax tree, used by the
// module tables (what a caller is told) and by decode (what the code does), so that the two agree. Any
// thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/result.hh"
#include "ptx/text/tree.hh"

namespace outboard::ptx {

/// Offsets of variables that follow each other, each at its own alignment.
struct sequence {
  std::vector<std::uint32_t> offsets;
  std::uint32_t size = 0;
};
sequence lay_out(const std::vector<variable>& list, std::uint32_t start = 0);

/// A device function's frame in local memory: returns, parameters, then .local and call-site .param
/// variables. Kernels have their parameters elsewhere. Offsets are parallel to function::variables; -1 for
/// what is not there.
struct frame_layout {
  std::vector<std::int64_t> offsets;
  std::uint32_t size = 0;  ///< multiple of 16
};
result<frame_layout> frame_of(const function& f);

/// Shared memory of a module. What device functions use has one place for all kernels, from 0 on; a kernel
/// that can reach them holds as much of it as they need. What only kernels use has a place in each of them,
/// behind that.
struct shared_layout {
  std::map<const variable*, std::uint32_t> common;
  std::map<std::pair<const function*, const variable*>, std::uint32_t> own;
  std::map<const function*, std::uint32_t> kernel_bytes;  ///< static, without dynamic

  std::uint32_t offset(const function& f, const variable& v) const;
};
result<shared_layout> shared_of(const program& p);

/// Bytes of local memory the deepest chain of direct calls from `f` takes; `open_ended` is set for recursion
/// and indirect calls.
result<std::uint64_t> stack_of(const program& p, const function& f, bool& open_ended);

}  // namespace outboard::ptx
