// Memory of this process that a context's devices read and write without a copy by the driver: a memory file,
// which the client may map too, and a buffer that stands for it, so that the driver locks its pages. It is
// used for many transfers, because locking pages takes long (1 ms for a MiB with NVIDIA's driver).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "api/opencl/table.hh"
#include "base/fd.hh"

namespace outboard::backend::opencl {

class locked_memory {
 public:
  /// Allocates whole pages. nullptr: memory is exhausted. `counted` is kept as long as the memory.
  static std::shared_ptr<locked_memory> make(const api::opencl::function_table& table, cl_context context,
                                             std::uint64_t size, std::shared_ptr<void> counted = nullptr);
  /// Destroyed by any thread, once no command uses the memory any more.
  ~locked_memory();
  locked_memory(const locked_memory&) = delete;
  locked_memory& operator=(const locked_memory&) = delete;

  std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }
  int file() const { return file_.get(); }

 private:
  explicit locked_memory(const api::opencl::function_table& table) : table_(table) {}
  void lock(cl_context context);

  const api::opencl::function_table& table_;
  std::shared_ptr<void> counted_;
  unique_fd file_;
  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  cl_command_queue queue_ = nullptr;  // only to map the buffer
  cl_mem buffer_ = nullptr;           // null: the driver copies once more
};

}  // namespace outboard::backend::opencl
