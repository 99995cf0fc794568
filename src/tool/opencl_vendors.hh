// The folder from which an OpenCL loader takes its platforms in a program that `outboard run` starts: those
// that the program would have had without us, and ours. Loaders take one folder (OCL_ICD_VENDORS), and not
// all of them a further library. Owned by `outboard run`; a process of its own removes it when that has
// ended, however it did.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/fd.hh"
#include "base/result.hh"

namespace outboard::tool {

class opencl_vendors {
 public:
  /// `libraries`: the folder of our front-end libraries; nothing is made where our ICD is not in it.
  static result<opencl_vendors> make(const std::string& libraries);
  opencl_vendors() = default;
  opencl_vendors(opencl_vendors&& other) noexcept;
  opencl_vendors& operator=(opencl_vendors&& other) noexcept;
  ~opencl_vendors();

  /// For OCL_ICD_VENDORS; empty: nothing was made. With a slash at its end: the loader of NVIDIA's toolkits
  /// puts the files' names behind it as it stands.
  std::string folder() const { return folder_.empty() ? folder_ : folder_ + "/"; }

 private:
  status add(const std::string& name, const std::string& library);
  status start_remover();
  void remove() const;

  std::string folder_;
  std::vector<std::string> files_;
  unique_fd life_;      ///< its end is the remover's sign
  pid_t remover_ = -1;  ///< -1: the destructor removes
};

}  // namespace outboard::tool
