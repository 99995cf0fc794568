// The texture or surface object that a kernel asks for, filled with a pattern. Lives for one launch.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernel.hh"

namespace conformance {

class image_object {
 public:
  explicit image_object(const texture_setup& setup);
  ~image_object();
  image_object(const image_object&) = delete;
  image_object& operator=(const image_object&) = delete;

  const std::string& failure() const { return failure_; }
  unsigned long long handle() const { return handle_; }
  /// Appends the content, as surface stores have left it.
  bool read(std::vector<std::uint8_t>& out) const;

 private:
  bool step(CUresult code, const char* what);
  void fill(CUarray array, unsigned level);
  bool copy(CUarray array, unsigned level, void* host, bool to_device) const;

  texture_setup setup_;
  std::string failure_;
  CUarray array_ = nullptr;
  CUmipmappedArray mipmaps_ = nullptr;
  unsigned long long handle_ = 0;
};

}  // namespace conformance
