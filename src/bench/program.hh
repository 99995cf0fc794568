// The program that is run natively and through Outboard in turns: an ordinary user of the driver's functions,
// on device 0, with PTX text of its own. It checks what its kernels and copies did. One thread; a process
// runs it once.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/result.hh"

namespace outboard::bench {

struct driver;

struct program_options {
  std::string library;     ///< of the driver: a path, or a name for the loader
  double seconds = 1;      ///< all rows together, about; each is measured a few times at least
  std::uint64_t bulk = 0;  ///< bytes of the large copies; 0: they are left out
};

/// What one run gave. Times and rates are medians of single calls, in the unit of the row (rows.hh).
struct program_result {
  std::string library, device;
  bool ours = false;              ///< the library is Outboard's front-end
  int driver_version = 0;         ///< 13000: CUDA 13.0
  std::uint64_t free_memory = 0;  ///< of the device, bytes
  std::map<std::string, double> values;
  std::map<std::string, std::string> missing;  ///< why a row has no value
};

/// By the driver in `options.library`. An error: there is no driver or device, or a result is wrong.
result<program_result> run_program(const program_options& options);
/// The same by these functions.
result<program_result> run_program(const driver& d, const program_options& options);

}  // namespace outboard::bench
