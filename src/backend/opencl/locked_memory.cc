#include "backend/opencl/locked_memory.hh"

#include <sys/mman.h>

#include <vector>

#include "backend/opencl/session.hh"
#include "base/pages.hh"
#include "base/sealed_file.hh"

namespace outboard::backend::opencl {

std::shared_ptr<locked_memory> locked_memory::make(const api::opencl::function_table& table,
                                                   cl_context context, std::uint64_t size,
                                                   std::shared_ptr<void> counted) {
  std::shared_ptr<locked_memory> made(new locked_memory(table));
  made->size_ = page_up(size);
  made->counted_ = std::move(counted);
  made->file_ = make_sealed_file(made->size_, "outboard-transfers");
  if (!made->file_) return nullptr;
  void* const at = ::mmap(nullptr, made->size_, PROT_READ | PROT_WRITE, MAP_SHARED, made->file_.get(), 0);
  if (at == MAP_FAILED) return nullptr;
  made->data_ = static_cast<std::byte*>(at);
  made->lock(context);
  return made;
}

/// Mapped for its whole life, because the driver keeps locked what the host may read and write.
void locked_memory::lock(cl_context context) {
  const std::vector<cl_device_id> devices = devices_of(table_, context);
  if (devices.empty()) return;
  cl_int code = CL_SUCCESS;
  queue_ = table_.clCreateCommandQueue(context, devices.front(), 0, &code);
  if (!queue_) return;
  buffer_ = table_.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size_, data_, &code);
  if (!buffer_) return;
  (void)table_.clEnqueueMapBuffer(queue_, buffer_, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size_, 0, nullptr,
                                  nullptr, &code);
}

locked_memory::~locked_memory() {
  if (buffer_) {
    (void)table_.clEnqueueUnmapMemObject(queue_, buffer_, data_, 0, nullptr, nullptr);
    (void)table_.clFinish(queue_);
    (void)table_.clReleaseMemObject(buffer_);
  }
  if (queue_) (void)table_.clReleaseCommandQueue(queue_);
  if (data_) ::munmap(data_, size_);
}

}  // namespace outboard::backend::opencl
