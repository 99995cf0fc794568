// Grids that kernels launch (dynamic parallelism). The CUDA runtime's device library, which nvcc links into
// the program, asks for them: room for parameters first, then the launch. They are collected while the grid
// runs and run when it has ended: nothing may wait for a grid of its own, and a grid counts as ended when
// those that it launched have. One object a grid that runs; any worker, own lock.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "ptx/run/code.hh"
#include "ptx/run/executor.hh"

namespace outboard::ptx {

/// Codes of __cuda_syscall_cnpv2LaunchDeviceV2, which the device library translates to those of the runtime.
enum class child_error : std::uint32_t { none = 0, value = 1, depth = 5, configuration = 7 };
/// Codes of the runtime that a thread keeps for cudaGetLastError.
constexpr std::uint32_t error_of_pending_count = 69;  // cudaErrorLaunchPendingCountExceeded

struct child_grid {
  const function_code* kernel = nullptr;
  dimensions grid{}, block{};
  std::uint32_t shared = 0;
  std::vector<std::byte> parameters;
};

/// What one grid has launched. All streams of it are one, in the order of the launches: a GPU promises no
/// more than that some of them may overlap.
struct child_list {
  std::deque<child_grid> now, tail;
  std::uint32_t depth = 0;  ///< of the grid that launched them
  bool empty() const { return now.empty() && tail.empty(); }
};

class child_grids {
 public:
  explicit child_grids(const code& module, std::uint32_t depth);
  ~child_grids();
  child_grids(const child_grids&) = delete;
  child_grids& operator=(const child_grids&) = delete;

  /// Where the kernel writes the parameters; 0: no room for more launches, or no kernel.
  std::uint64_t reserve(std::uint64_t kernel, const dimensions& grid, const dimensions& block,
                        std::uint32_t shared);
  child_error launch(std::uint64_t buffer, std::uint64_t stream);
  std::uint64_t make_stream();
  child_error destroy_stream(std::uint64_t stream);
  /// The memory of parameters, that kernels may touch; empty while there is none.
  range parameters() const;
  child_list take();

 private:
  const code& module_;
  mutable std::mutex mutex_;
  char* arena_ = nullptr;
  std::uint64_t used_ = 0, streams_ = 0;
  std::map<std::uint64_t, child_grid> reserved_;  // by address of the parameters
  child_list made_;
};

struct call_site;
/// The same calls for lane `l`, as builtin_call hands them on; false after recording a fault.
bool child_call(warp* w, const inst* i, const call_site& site, int l);

}  // namespace outboard::ptx
