// What the front-end remembers of each kind of object, beyond its context. Owned by the handle tables.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "frontend/handle_table.hh"
#include "marshal/kernel_table.hh"

namespace outboard::frontend::cuda {

struct stream_info final : object {
  unsigned flags = 0;
  int priority = 0;
  std::uint64_t id = 0;
};

struct event_info final : object {
  unsigned flags = 0;
};

struct global_address {
  std::uint64_t address = 0, size = 0;
};

/// A module or a library: what the server said of its contents, and the handles already given out for them.
struct module_info final : object {
  bool is_library = false;
  marshal::kernel_table contents;
  std::mutex mutex;  // guards what follows
  std::map<std::string, std::uint64_t, std::less<>> kernels;    ///< name -> CUkernel or CUfunction
  std::map<std::string, global_address, std::less<>> globals;
  std::uint64_t module_handle = 0;  ///< cuLibraryGetModule
};

/// A CUkernel or a CUfunction.
struct kernel_object final : object {
  std::string name;
  std::uint64_t parent = 0;  ///< library or module
  std::uint64_t function = 0;  ///< cuKernelGetFunction, once asked; guarded by mutex
  const marshal::kernel_info* facts = nullptr;  ///< in the parent's contents
  std::vector<marshal::kernel_parameter> parameters;
  std::uint32_t parameter_bytes = 0;
  std::atomic<bool> launched{false};  ///< the first launch waits for load and JIT errors
  std::atomic<std::uint32_t> dynamic_shared_limit{48 << 10};
  std::mutex mutex;  // guards what follows
  std::map<int, std::pair<int, int>> attributes;  ///< CUfunction_attribute -> {result, value}
};

}  // namespace outboard::frontend::cuda
