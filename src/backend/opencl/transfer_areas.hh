// Memory that the client and its worker both have, for the bytes of transfers: they need not travel. The
// client writes what it likes into it at any time; nothing here is read but by devices. Own locks; any
// thread.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "backend/opencl/locked_memory.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::backend::opencl {

/// Memory of this process that a command reads or writes; `owner` keeps it for as long.
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

  /// A command on the bytes from here on was given to the device, or why not. One reference of `done` more.
  void used(std::uint64_t offset, cl_event done, cl_int code);
  /// What the block's last command came to: its event, for the caller to release, or its code.
  struct use {
    cl_event done = nullptr;
    cl_int code = CL_SUCCESS;
  };
  use last_use(std::uint64_t block);
  /// A bit for each block that a command still uses, and for each whose last command failed.
  marshal::opencl::busy_blocks_body busy();

 private:
  const api::opencl::function_table& table_;
  const cl_context context_;
  const std::shared_ptr<locked_memory> memory_;
  const std::uint64_t block_;
  std::mutex mutex_;  // guards uses_
  std::vector<use> uses_;
};

/// So many bytes of the area, if there is one and all of them lie in it.
std::optional<host_bytes> bytes_in(std::shared_ptr<transfer_area> area, std::uint64_t offset,
                                   std::uint64_t size);

class transfer_areas {
 public:
  explicit transfer_areas(const api::opencl::function_table& table) : table_(table) {}

  /// The descriptor to send on; nothing: `code` says why.
  std::optional<int> open(const marshal::opencl::area_body& wanted, cl_context context, cl_int& code);
  /// Commands under way keep it. False: there is none.
  bool close(std::uint64_t number);
  void close_all_of(cl_context context);
  std::shared_ptr<transfer_area> find(std::uint64_t number) const;

 private:
  const api::opencl::function_table& table_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::uint64_t, std::shared_ptr<transfer_area>> areas_;
  std::uint64_t total_ = 0;
};

}  // namespace outboard::backend::opencl
