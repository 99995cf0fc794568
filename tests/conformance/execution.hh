// Runs one kernel on the device and brings back what it wrote.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernel.hh"

namespace conformance {

struct run_result {
  std::string failure;   ///< empty: it ran; else what failed, with the JIT's log
  bool refused = false;  ///< it did not load
  std::size_t threads = 0;
  std::vector<std::uint8_t> rows;  ///< result_bytes for each result of each thread
  std::vector<std::uint8_t> scratch;
};

/// One device, its primary context current, with memory for every kernel. Single-threaded.
class device {
 public:
  device();
  run_result run(const kernel& k);
  std::string name() const;

 private:
  run_result launch(const kernel& k, CUmodule module);
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUdeviceptr in_ = 0, out_ = 0, scratch_ = 0;
};

/// Results as the file keeps them: NaNs differ only where the ISA names the NaN.
void normalise(const kernel& k, run_result& r);

}  // namespace conformance
