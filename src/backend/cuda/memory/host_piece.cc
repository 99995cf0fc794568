#include "backend/cuda/memory/host_piece.hh"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string>

#include "backend/cuda/driver_call.hh"
#include "backend/cuda/memory/page_locks.hh"
#include "backend/cuda/relaxed_capture.hh"

namespace outboard::backend {
namespace {

// The kernel's numbers (set_mempolicy(2)); libnuma's headers need not be there.
constexpr int prefer = 1, allowed_nodes = 1 << 2;
constexpr std::int32_t most_nodes = 1024;

struct node_mask {
  static constexpr std::int32_t bits = 8 * sizeof(unsigned long);
  std::array<unsigned long, most_nodes / bits> words{};
  unsigned long& word(std::int32_t node) { return words[static_cast<std::size_t>(node / bits)]; }
  static unsigned long bit(std::int32_t node) { return 1ul << (node % bits); }
};

void release_primary(const api::driver_table& driver, CUdevice device) {
  call_driver(driver.cuDevicePrimaryCtxRelease_v2, device);
}

/// A device's primary context, current for the length of a scope.
class in_primary {
 public:
  in_primary(const api::driver_table& driver, CUdevice device) : driver_(driver), device_(device) {
    CUcontext context = nullptr;
    code_ = call_driver(driver.cuDevicePrimaryCtxRetain, &context, device);
    if (code_ != CUDA_SUCCESS) return;
    code_ = call_driver(driver.cuCtxPushCurrent_v2, context);
    if (code_ != CUDA_SUCCESS) release_primary(driver, device);
  }
  ~in_primary() {
    CUcontext was = nullptr;
    if (code_ != CUDA_SUCCESS) return;
    call_driver(driver_.cuCtxPopCurrent_v2, &was);
    if (!kept_) release_primary(driver_, device_);
  }
  in_primary(const in_primary&) = delete;
  in_primary& operator=(const in_primary&) = delete;
  CUresult code() const { return code_; }
  /// It stays alive until somebody releases it.
  void keep() { kept_ = true; }

 private:
  const api::driver_table& driver_;
  CUdevice device_ = 0;
  CUresult code_ = CUDA_SUCCESS;
  bool kept_ = false;
};

}  // namespace

bool has_memory_node(std::int32_t node) {
  if (node < 0 || node >= most_nodes) return false;
  node_mask allowed;
  const long asked = ::syscall(SYS_get_mempolicy, nullptr, allowed.words.data(), most_nodes + 1, nullptr,
                               static_cast<unsigned long>(allowed_nodes));
  if (asked == 0) return (allowed.word(node) & node_mask::bit(node)) != 0;
  // A container may forbid the question.
  return node == 0 || ::access(("/sys/devices/system/node/node" + std::to_string(node)).c_str(), F_OK) == 0;
}

CUresult host_piece::place(std::uint64_t address, std::uint64_t size, int file, std::int32_t node) {
  address_ = address;
  size_ = size;
  if (::mmap(memory(), size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  node_mask wanted;
  wanted.word(node) = node_mask::bit(node);
  // Where a container may not, its pages are where the kernel likes.
  (void)::syscall(SYS_mbind, memory(), size, prefer, wanted.words.data(), most_nodes + 1, 0);
  return CUDA_SUCCESS;
}

CUresult host_piece::page_lock(const api::driver_table& driver, CUdevice device) {
  if (locked_) return CUDA_SUCCESS;
  in_primary here(driver, device);
  if (here.code() != CUDA_SUCCESS) return here.code();
  const relaxed_capture relaxed(driver);
  CUresult code = call_driver(driver.cuMemHostRegister_v2, memory(), size_,
                              CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
  CUdeviceptr seen = 0;
  if (code == CUDA_SUCCESS) {
    code = call_driver(driver.cuMemHostGetDevicePointer_v2, &seen, memory(), 0);
    if (code == CUDA_SUCCESS && seen != address_) code = CUDA_ERROR_NOT_SUPPORTED;
    if (code != CUDA_SUCCESS) call_driver(driver.cuMemHostUnregister, memory());
  }
  if (code != CUDA_SUCCESS) return code;
  here.keep();
  locked_ = true;
  device_ = device;
  return code;
}

void host_piece::lock_again(const api::driver_table& driver, CUdevice device) {
  if (!locked_ || device_ != device) return;
  locked_ = false;
  release_primary(driver, device);
  (void)page_lock(driver, device);  // else kernels that touch it fail, as they do without access
}

bool host_piece::remove(const api::driver_table& driver) {
  if (!locked_) return reserve_again(memory(), size_), true;
  bool forgotten = false;
  {
    const in_primary here(driver, device_);
    const relaxed_capture relaxed(driver);
    forgotten = give_back_page_locked(driver, memory(), size_, range_after::reserved);
  }
  release_primary(driver, device_);
  locked_ = false;
  return forgotten;
}

}  // namespace outboard::backend
