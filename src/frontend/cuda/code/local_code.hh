// What this process itself reads of the kernels in an image. A launch copies as many bytes of the program's
// memory as the layout of the kernel's parameters says, so the server's table of kernels is compared with the
// program's own image before the first launch. An image is parsed at most once. Any thread.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/cuda/headers.hh"
#include "marshal/cuda/image.hh"
#include "marshal/cuda/kernel_table.hh"
#include "marshal/cuda/snapshot.hh"

namespace outboard::frontend::cuda {

/// One image as it was sent. It is parsed at the first question; until then its bytes are kept, unless many
/// images wait already.
class local_code {
 public:
  local_code(marshal::module_image image, const marshal::image_target& target);
  ~local_code();
  local_code(const local_code&) = delete;
  local_code& operator=(const local_code&) = delete;

  /// nullptr: the image has no such kernel, or it cannot be read here.
  const marshal::kernel_info* find_kernel(std::string_view name);

 private:
  void parse();

  std::mutex mutex_;                            // guards what follows
  std::optional<marshal::module_image> image_;  ///< until it is parsed
  std::uint64_t counted_ = 0;                   ///< bytes of it among those of all images that wait
  const marshal::image_target target_;
  marshal::kernel_table table_;
};

/// What the inputs of a link say of their kernels. The linked image comes from the server, so it is compared
/// with them. Belongs to one link; one thread at a time.
class link_inputs {
 public:
  void add(CUjitInputType type, std::span<const std::byte> input, const marshal::image_target& target);

  /// False: a kernel of the linked image has other parameters than in the inputs, or is in none of them.
  bool agree(const marshal::kernel_table& linked) const;

 private:
  std::map<std::string, marshal::kernel_info, std::less<>> kernels_;
  bool all_read_ = true;  ///< false: an input is of a kind that is not read here
};

bool same_layout(const marshal::kernel_info& one, const marshal::kernel_info& other);

/// How many bytes of parameters the driver allows a kernel on this device.
std::uint32_t parameter_limit_of(const marshal::snapshot& facts, std::int32_t device);

}  // namespace outboard::frontend::cuda
