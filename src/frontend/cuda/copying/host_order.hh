// Which host bytes queued work has still to write, and where a copy finds those that it needs. The order of
// streams decides what a copy reads, not the moment of the call: every path that reads or writes memory of
// the program before the device comes to it asks here first. Any thread.
//
// Page-locked memory has its place on the server, too, if work queued there may touch it without asking this
// process: once kernels know it, once a graph copies it, once a host function may write it before a copy
// reads it. From then on copies name that place and the device's own order holds; what is here is brought up
// to date with waits (mirrors.hh). If both sides have the same pages, that place is the memory itself.
#pragma once

#include <cstdint>
#include <optional>

#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

/// A block of host memory that the server has, too.
struct shown_block {
  enum class kept : std::uint8_t {
    twice,     ///< what is there may be newer (mirrors.hh)
    once,      ///< page-locked: both sides have the same pages
    in_range,  ///< the same pages, which the program made by cuMemCreate
  };
  std::uint64_t base = 0, size = 0;
  std::uint64_t device_address = 0;
  kept how = kept::once;
  bool kernels = true;  ///< twice: kernels may know it, else copies alone
};

/// In which the address lies, if both sides have its pages: a copy that its caller waits for is over there,
/// too.
std::optional<shown_block> same_pages(std::uint64_t address);

/// Host memory that the program made by cuMemCreate, in which the address lies.
std::optional<shown_block> made_by_program(std::uint64_t address);

/// In which the address lies.
std::optional<shown_block> shown(std::uint64_t address);

/// All of the host range is one page-locked block.
bool page_locked(std::uint64_t address, std::uint64_t size);

/// Bytes of posted copies may still be on their way into this host range: they must have landed before it is
/// read. Waits for them, if there are any. Leaves the lane's buffers alone.
CUresult settle(lane& own, const void* source, std::uint64_t size);

/// Where the server has a host range, for copies to name.
struct server_place {
  CUresult code = CUDA_SUCCESS;
  std::uint64_t address = 0;  ///< 0: the server does not have it
};

/// If the server has all of it. What was on its way here has landed.
server_place place_on_server(lane& own, std::uint64_t address, std::uint64_t size);

/// For a copy whose host bytes other queued work may write before it, or read behind it, without asking this
/// process: page-locked memory gets its place on the server now. Address 0: it is not page-locked, or the
/// server cannot have so much.
server_place make_place_on_server(lane& own, std::uint64_t address, std::uint64_t size);

/// The same of a source while host functions are expected: one of them may write it first.
server_place place_behind_functions(lane& own, std::uint64_t address, std::uint64_t size);

}  // namespace outboard::frontend::cuda
