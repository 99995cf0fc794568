// A kernel launch as data. It is checked when it is made, and runs as often as its graph is launched. Plain
// values; run_kernel() may be called from any thread.
#pragma once

#include <vector>

#include "device/cpu/code.hh"
#include "device/cpu/context.hh"

namespace outboard::device::cpu {

struct launch_shape {
  ptx::dimensions grid, block;
  std::uint32_t shared = 0;
  bool cooperative = false;
};

struct kernel_work {
  CUfunction function = nullptr;  ///< as the program gave it
  context_ptr owner;
  callable what;
  launch_shape how;
  std::vector<std::byte> parameters;  ///< as the kernel reads them
  std::uint32_t stack = 0;
  std::shared_ptr<kernel_heap> heap;  ///< null where the module does not call malloc
  std::vector<CUlaunchAttribute> attributes;
};

/// Checks everything for which a launch can be refused. `parameters` or `extra` are those of cuLaunchKernel.
CUresult prepare_kernel(const context_ptr& c, CUfunction function, const launch_shape& how, void** parameters,
                        void** extra, kernel_work& out);
CUresult run_kernel(const kernel_work& work);

}  // namespace outboard::device::cpu
