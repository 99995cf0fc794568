// How much of the devices of its context an object takes, if their back-end limits what a session may hold of
// them. It is counted here, so that a creation that does not wait is refused at the call; the worker counts
// by itself. Owned by what the front-end remembers of the object; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "api/opencl/headers.hh"

namespace outboard::frontend::opencl {

struct context_info;
struct device_info;
struct peer;

class memory_claim {
 public:
  memory_claim() = default;
  memory_claim(memory_claim&& other) noexcept;
  memory_claim& operator=(memory_claim&& other) noexcept;
  ~memory_claim();

  /// CL_MEM_OBJECT_ALLOCATION_FAILURE: not enough is left. Asks the back-end only if memory of released
  /// objects may still be in use.
  static cl_int take(const context_info& context, std::uint64_t bytes, memory_claim& claim);
  /// The same for an object whose size is known only once the back-end has made it: there was room for it.
  static memory_claim of_made(const context_info& context, std::uint64_t bytes);
  /// Waits for released memory to become free, if that is needed for so much.
  static void make_room(const context_info& context, std::uint64_t bytes) {
    make_room(context, bytes, bytes);
  }

 private:
  static void make_room(const context_info& context, std::uint64_t bytes, std::uint64_t uncounted);
  void cancel();  // it has never been anything

  std::vector<device_info*> on_;  // whole devices, which live as long as the process
  std::uint64_t bytes_ = 0;
  peer* home_ = nullptr;
};

}  // namespace outboard::frontend::opencl
