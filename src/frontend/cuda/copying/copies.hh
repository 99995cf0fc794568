// What copies of every shape need to know about the program's memory. Any thread.
#pragma once

#include <cstdint>

#include "frontend/cuda/copying/host_order.hh"

namespace outboard::frontend::cuda {

/// Copies of the synchronous kind end before the program goes on; what they wrote comes back with the wait.
CUresult finish(lane& own, marshal::flavour how);

/// The results of what the stream of a synchronous copy to the device had to do before: kernels' changes of
/// memory of both sides, later copies. (Kernels' changes of page-locked memory that both sides share count
/// once the program has asked for its device pointer or allocated it to be mapped.) The driver returns from
/// such a copy when all of that is over (measured: 580, every size, pageable and page-locked), so the program
/// may look at it; the copy itself need not be waited for.
class earlier_results {
 public:
  /// Before the copy.
  explicit earlier_results(lane& own)
      : own_(own), mark_(process::instance().memory().mirrors().results_mark()) {}
  /// To be called after the copy: waits if results come, in the copy's default stream and the streams that
  /// this one waits for.
  CUresult bring(marshal::flavour how) const;

 private:
  lane& own_;
  const std::uint64_t mark_;
};

/// Waits for the work before a copy between two places of the program, which is over when its call returns:
/// the work of its stream, or of the default one. Other streams are left out, because their work may wait for
/// this thread.
CUresult wait_in_stream(CUstream stream, marshal::flavour how);

/// Device memory by our books, else host memory: every device address that a program can have is in them.
bool on_device(std::uint64_t address);
/// The same without managed memory: this process cannot touch it, whatever the program calls it.
bool of_device_alone(std::uint64_t address);

/// The range begins in a block that we know and ends outside of it and of those that touch it: every copy of
/// it is refused by the driver, to the byte (measured: 580), before it has read or written anything.
bool leaves_its_block(std::uint64_t address, std::uint64_t size);

/// A copy in a graph has one device, which must reach memory of the other one: opens that to it, if it is
/// another's. A driver does without where devices cannot reach each other; we cannot, and the driver's code
/// for the copy says so.
void reach(lane& own, std::uint64_t address);

/// Whether a copy from the program's memory may still be under way when the call returns. Another process
/// that shares memory with this one may learn of the return by other means.
inline bool may_run_behind(marshal::flavour how) {
  return marshal::on_stream(how) || !process::instance().memory().shared().in_use();
}

}  // namespace outboard::frontend::cuda
