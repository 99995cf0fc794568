// When host memory that kernels see goes to the server and comes back: before a request that begins work or
// waits for it, and after one that reports its completion to the program. Called for every request that
// leaves; costs one load while no such memory exists. Any thread.
#pragma once

#include <span>

#include "api/cuda/functions.hh"
#include "frontend/process.hh"

namespace outboard::frontend::cuda {

/// True once the program has page-locked or managed memory at all.
inline bool host_memory_in_use() { return process::instance().memory().host_memory_in_use(); }

/// Where the work of a request stands in the program's order.
enum class work_order : std::uint8_t {
  by_line,    ///< as its line says
  in_stream,  ///< in the stream that is named beside this
  waited_for  ///< nowhere: it is over when the call returns
};

/// What the sender of a request says of it beside what its line says.
struct said_of_request {
  bool names_copies_alone = false;  ///< no kernel learns of an address by it
  work_order order = work_order::by_line;
  bool per_thread = false;
  std::uint64_t stream = 0;
  std::uint64_t target = 0;  ///< of a copy: where it writes
};

/// Makes pinned memory whose address is in the request visible to kernels, unless it names copies alone, and
/// sends what the program has changed. CUDA_ERROR_MAP_FAILED: the server cannot have memory at such an
/// address.
CUresult before_request(lane& own, api::opcode code, std::span<const std::byte> payload,
                        std::span<const std::byte> bulk, const said_of_request& said);

/// Marks the work that has left before a call: that work is complete if the call reports that all is.
struct completion_mark {
  std::uint64_t mirrors = 0, managed = 0,
                live = 0;  ///< mirrors::work_mark, managed_blocks::mark, live_memory::mark
};
completion_mark take_mark();

/// What the request that is about to leave does may be seen in the host's memory (mirrors::results_mark).
void expect_results(lane& own);

/// The request has left, or never will.
void tell_left(lane& own);
inline void after_leaving(lane& own) {
  if (own.managed_work || own.live_work || own.mirrors_work || own.results_come) tell_left(own);
}

/// What threads of ours ask the session about the program's work.
work_questions questions();

/// After a call that succeeded; `mark` was taken before it. `context`: that it ran in, which need not be the
/// lane's own.
CUresult after_call(lane& own, api::opcode code, std::uint64_t context, std::span<const std::byte> payload,
                    const completion_mark& mark);

/// Makes the pinned block that holds the address visible to kernels, or (`to_kernels` false) gives it a place
/// on the server that copies alone name, under the same address.
CUresult show_pinned(lane& own, std::uint64_t address, bool to_kernels = true);
/// A block of the program's own memory, or managed memory that the server has. `device_address` is out;
/// `view`: where we reach it, if not there.
CUresult show_block(lane& own, std::uint64_t address, std::uint64_t size, marshal::host_block kind,
                    std::uint64_t& device_address, std::byte* view = nullptr, bool to_kernels = true);
/// No kernel sees it any more; waits for the device. Nothing happens where none ever did.
void hide_block(lane& own, std::uint64_t address);
/// The same for memory that the server shares.
void unshare(lane& own, std::uint64_t address);

}  // namespace outboard::frontend::cuda
