// The environment variables about core dumps, as the driver reads them at cuInit (observed on 580.159.04).
// Pure function; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace outboard::frontend::cuda {

struct coredump_wishes {
  std::map<int, std::string> values;  ///< by CUcoredumpSettings: what is set, as its bytes
  std::vector<std::string> unknown;   ///< words of CUDA_COREDUMP_GENERATION_FLAGS that mean nothing
  bool dump = false;                  ///< faults are to dump
  bool on_demand = false;             ///< the program wants to be asked for dumps
};

struct process_facts {
  std::string host;
  std::int32_t process = 0;
  std::int64_t time = 0;
};

/// A name as programs give it: %h, %p and %t mean this process.
std::string expand_core_name(std::string_view pattern, const process_facts& own);

coredump_wishes read_coredump_environment(const std::function<const char*(const char*)>& variable,
                                          const process_facts& own);

/// cuInit has succeeded: the values become those of the process (coredump.cc). Once.
void take_coredump_environment();

}  // namespace outboard::frontend::cuda
