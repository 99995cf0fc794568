// Runs kernels of parsed modules on the CPU: instantiate() gives a module its addresses, executor::run()
// executes one launch. The caller owns all device memory; generic device addresses are host pointers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"
#include "ptx/text/module.hh"

namespace outboard::ptx {

struct memory_range {
  std::uint64_t begin = 0, size = 0;
  bool writable = true;
};

/// Says which addresses kernels may touch. Called from several worker threads at once while a launch runs,
/// but seldom: each warp caches the last ranges. The memory of an answer must stay mapped until the launch
/// ends (defer unmapping of freed memory until then; what a launch may still do with freed memory is the
/// program's own bug).
class address_space {
 public:
  virtual ~address_space() = default;
  /// The largest valid range that contains `address`, false when there is none.
  virtual bool find(std::uint64_t address, memory_range& out) const = 0;
  /// The allocation that contains `address` or lies closest to it, for the text of an error; false when there
  /// is none at all.
  virtual bool nearest(std::uint64_t address, memory_range& out) const { return find(address, out); }
};

/// Where malloc and free of kernels have their memory; it must be valid in the launch's address space. Called
/// from several worker threads at once.
class device_heap {
 public:
  virtual ~device_heap() = default;
  virtual std::uint64_t allocate(std::uint64_t bytes) = 0;  ///< 16-byte aligned; 0 when there is no room
  virtual bool release(std::uint64_t address) = 0;          ///< false: not an address that allocate gave
};

class texture_source;  // texture.hh
struct code;           // decoded functions, internal to src/ptx

/// A module with addresses and decoded code, immutable; any thread. Does not own the variables' memory.
class loaded_module {
 public:
  loaded_module(module_ptr source, std::unique_ptr<const code> decoded, std::vector<void*> addresses);
  ~loaded_module();
  loaded_module(const loaded_module&) = delete;
  loaded_module& operator=(const loaded_module&) = delete;

  const module& source() const { return *source_; }
  void* address(std::string_view variable) const;  ///< nullptr when there is no such variable
  const code& decoded() const { return *code_; }

 private:
  module_ptr source_;
  std::unique_ptr<const code> code_;
  std::vector<void*> addresses_;  // parallel to source_->variables()
};

using loaded_module_ptr = std::shared_ptr<const loaded_module>;

/// Gives one variable its memory: at least `size` bytes at `align`; instantiate() then writes the initial
/// value (zeros where the module has none). The memory must stay until the loaded module is gone.
using place_variable = std::function<result<void*>(const variable_info&)>;

/// Decodes every function (unsupported instructions and unresolved symbols are refused here, with name and
/// line), places every variable and initialises it.
result<loaded_module_ptr> instantiate(module_ptr source, const place_variable& place);

/// What instantiate() would refuse of a module that others will be linked with: its .extern symbols may lack
/// their definitions.
status check_part(const module& part);

using dimensions = std::array<std::uint32_t, 3>;

struct launch_request {
  loaded_module_ptr module;
  std::string_view kernel;
  dimensions grid{1, 1, 1}, block{1, 1, 1};
  std::uint32_t dynamic_shared = 0;
  std::span<const std::byte> parameters;  ///< packed as kernel_info says; read during run() only
  bool cooperative = false;
  const address_space* memory = nullptr;
  device_heap* heap = nullptr;                  ///< null: malloc of kernels gives null
  const texture_source* textures = nullptr;     ///< nullptr: there are none
  std::function<void(std::string_view)> print;  ///< device printf; called from any worker, one call at a time
  /// cudaGraphSetConditional of kernels in graphs; called from any worker. Without it such a call is an
  /// error.
  std::function<void(std::uint64_t handle, std::uint32_t value)> set_conditional;
  std::uint32_t stack_bytes = 1024;  ///< per thread, for recursive functions (cuCtxSetLimit)
};

enum class outcome {
  ok,
  illegal_address,      ///< CUDA_ERROR_ILLEGAL_ADDRESS
  misaligned_address,   ///< CUDA_ERROR_MISALIGNED_ADDRESS
  trap,                 ///< CUDA_ERROR_LAUNCH_FAILED
  assertion,            ///< CUDA_ERROR_ASSERT
  illegal_instruction,  ///< CUDA_ERROR_ILLEGAL_INSTRUCTION
  deadlock,             ///< a barrier that can never complete; a GPU would hang
  cancelled,            ///< the token was set
  out_of_resources,     ///< CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, or memory of the host ran out
  invalid_request,      ///< CUDA_ERROR_INVALID_VALUE: no such kernel, too few parameter bytes, empty grid
};

struct launch_result {
  outcome kind = outcome::ok;
  std::string text;  ///< one sentence with kernel, PTX line and statement, address, block and thread
  std::uint64_t address = 0;
  dimensions block{}, thread{};
  std::uint32_t line = 0;  ///< of the PTX text

  bool ok() const { return kind == outcome::ok; }
};

/// Set from any thread; a running launch ends within 100 ms.
class cancel_token {
 public:
  void cancel() { flag_.store(true, std::memory_order_relaxed); }
  bool cancelled() const { return flag_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> flag_{false};
};

/// Largest values a launch may have; the same on every machine, so that programs see one device.
struct executor_limits {
  static constexpr std::uint32_t max_threads = 1024;
  static constexpr dimensions max_block{1024, 1024, 64};
  static constexpr dimensions max_grid{0x7fffffff, 65535, 65535};
  static constexpr std::uint32_t max_shared = 227u << 10;  ///< static + dynamic, of one block
  static constexpr std::uint32_t warp_size = 32;
};

struct child_list;  // child_grids.hh
class scheduler;    // worker threads and the queue of launches, internal to src/ptx

/// A pool of `threads` workers that runs blocks of all launches in turn. Thread-safe: several run() at once
/// share the workers fairly. Destroy only after all run() have returned.
class executor {
 public:
  explicit executor(unsigned threads);
  ~executor();
  executor(const executor&) = delete;
  executor& operator=(const executor&) = delete;

  /// Returns when the last block has ended, those of grids that kernels have launched among them, or at the
  /// first error (what remains is dropped).
  launch_result run(const launch_request& request, const cancel_token* cancel = nullptr);

  unsigned threads() const;
  /// Blocks of `block_threads` threads that may all be resident at once (cooperative launches).
  std::uint32_t resident_blocks(const kernel_info& kernel, std::uint32_t block_threads,
                                std::uint32_t dynamic_shared) const;

 private:
  launch_result run_grid(const launch_request& request, const cancel_token* cancel, child_list& children);

  std::unique_ptr<scheduler> scheduler_;
};

}  // namespace outboard::ptx
