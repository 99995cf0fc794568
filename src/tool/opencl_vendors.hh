// The folder from which an OpenCL loader takes its platforms in a program that `outboard run` starts: those
// that the program would have without us, and ours. It is needed because loaders take one folder
// (OCL_ICD_VENDORS), and not all of them take a further library. Owned by `outboard run`; a separate process
// removes it when `run` has ended, in whatever way.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::tool {

class opencl_vendors {
 public:
  /// `libraries` is the folder of the client library. Makes nothing if our ICD is not in it.
  static result<opencl_vendors> make(const std::string& libraries);
  opencl_vendors() = default;
  opencl_vendors(opencl_vendors&& other) noexcept;
  opencl_vendors& operator=(opencl_vendors&& other) noexcept;
  ~opencl_vendors();

  /// For OCL_ICD_VENDORS; empty: nothing was made. It ends with a slash, because the loader of NVIDIA's
  /// toolkits appends the files' names to it as it is.
  std::string folder() const { return folder_.empty() ? folder_ : folder_ + "/"; }

 private:
  status add(const std::string& name, const std::string& library);
  status start_remover();
  void remove() const;

  std::string folder_;
  std::vector<std::string> files_;
  unique_fd life_;      ///< the remover starts to work when it is closed
  pid_t remover_ = -1;  ///< -1: the destructor removes the folder
};

}  // namespace outboard::tool
