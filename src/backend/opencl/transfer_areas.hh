// Memory that the client and its worker both have, for the bytes of transfers, which then need not travel.
// The client may write into it at any time, so only devices read it, and no code here does. Own locks; any
// thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/opencl/locked_memory.hh"
#include "backend/opencl/memory_ledger.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::backend::opencl {

/// Memory of this process that a command reads or writes. `owner` keeps it alive until then.
struct host_bytes {
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::shared_ptr<const void> owner;
};

class transfer_area {
 public:
  static constexpr std::uint64_t most_blocks = 64;

  transfer_area(const api::opencl::function_table& table, cl_context context,
                std::shared_ptr<locked_memory> memory, std::uint64_t block);
  ~transfer_area();
  transfer_area(const transfer_area&) = delete;
  transfer_area& operator=(const transfer_area&) = delete;

  cl_context context() const { return context_; }
  const locked_memory& memory() const { return *memory_; }

  /// Notes that a command on the bytes from here on was given to the device, or why not. Takes another
  /// reference to `done`.
  void used(std::uint64_t offset, cl_event done, cl_int code);
  /// Returns the block's last command: its event, which the caller releases, or its error code.
  struct use {
    cl_event done = nullptr;
    cl_int code = CL_SUCCESS;
  };
  use last_use(std::uint64_t block);
  /// Returns a bit for each block that a command still uses, and for each block whose last command failed.
  marshal::opencl::busy_blocks_body busy();

 private:
  const api::opencl::function_table& table_;
  const cl_context context_;
  const std::shared_ptr<locked_memory> memory_;
  const std::uint64_t block_;
  std::mutex mutex_;  // guards uses_
  std::vector<use> uses_;
};

/// Returns so many bytes of the area, if it exists and all of them lie in it.
std::optional<host_bytes> bytes_in(std::shared_ptr<transfer_area> area, std::uint64_t offset,
                                   std::uint64_t size);

class transfer_areas {
 public:
  explicit transfer_areas(const api::opencl::function_table& table) : table_(table) {}

  /// From now on areas count there, and are not opened beyond what the session may hold. Before any is open.
  void count_in(std::shared_ptr<memory_ledger> ledger) { ledger_ = std::move(ledger); }
  /// Returns the descriptor to send on; nothing if that failed, and `code` says why.
  std::optional<int> open(const marshal::opencl::area_body& wanted, cl_context context, cl_int& code);
  /// Closes the area. Commands under way keep its memory. False: there is no such area.
  bool close(std::uint64_t number);
  void close_all_of(cl_context context);
  std::shared_ptr<transfer_area> find(std::uint64_t number) const;

 private:
  const api::opencl::function_table& table_;
  std::shared_ptr<memory_ledger> ledger_;  // null: nothing is counted
  mutable std::mutex mutex_;               // guards what follows
  std::map<std::uint64_t, std::shared_ptr<transfer_area>> areas_;
  std::uint64_t total_ = 0;
};

}  // namespace outboard::backend::opencl
