// The mock device. Every function of the tables that is implemented somewhere succeeds, is counted, and gives
// deterministic handles and values. Memory is real, so copies work. Device attributes are those of an sm_90
// board, so that a CUDA runtime starts on it. Tests own and control it; its entries and controls may be
// called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"
#include "device/device.hh"

namespace outboard::device::mock {

/// One received call, with arguments as raw 64-bit values (pointers, handles, numbers; structs by their first
/// bytes).
struct call_record {
  api::opcode code = api::opcode::none;
  std::string_view name;
  std::vector<std::uint64_t> arguments;
  std::uint64_t thread = 0;  ///< a small number per calling thread, from 1
  CUresult result = CUDA_SUCCESS;
};

struct parameter_layout {
  std::size_t offset = 0, size = 0;
};

class mock_device : public device {
 public:
  /// How many calls of this function have begun.
  virtual std::uint64_t calls(std::string_view name) const = 0;
  virtual std::uint64_t all_calls() const = 0;

  /// The next `times` calls of `name` do nothing and return `code`; CUDA_SUCCESS ends that.
  virtual void fail(std::string_view name, CUresult code, std::uint64_t times = ~0ull) = 0;

  /// Calls of `name` wait from now on until release(name), before they do anything.
  virtual void block(std::string_view name) = 0;
  virtual void release(std::string_view name) = 0;
  /// True once `count` calls wait in `name` at the same time; false when `limit` passes first.
  virtual bool wait_blocked(std::string_view name, std::size_t count,
                            std::chrono::milliseconds limit) const = 0;

  /// Finished calls in the order in which they ended; beyond 65536 the oldest are dropped.
  virtual std::vector<call_record> log() const = 0;
  virtual void clear_log() = 0;

  /// Sets what cuKernelGetParamInfo and cuFuncGetParamInfo return for every kernel (initially one 8-byte
  /// parameter).
  virtual void set_parameters(std::vector<parameter_layout> layout) = 0;
  virtual void set_attribute(CUdevice_attribute id, int value) = 0;
  virtual void set_total_memory(std::uint64_t bytes) = 0;
  virtual std::uint64_t used_memory() const = 0;
};

/// Only one can exist at a time in a process, because entries of a driver carry no pointer to their device;
/// opening another is an error. Destroying it frees its memory; its entries must not be called afterwards.
result<std::unique_ptr<mock_device>> open();

}  // namespace outboard::device::mock
