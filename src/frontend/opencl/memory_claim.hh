// The memory that an object takes on the devices of its context, if their back-end limits what a session may
// hold. It is counted here, so that a creation that does not wait for an answer is refused at the call. The
// worker counts by itself. Owned by what the front-end remembers about the object; any thread.
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

  /// Returns CL_MEM_OBJECT_ALLOCATION_FAILURE if not enough is left. Asks the back-end only if memory of
  /// released objects may still be in use.
  static cl_int take(const context_info& context, std::uint64_t bytes, memory_claim& claim);
  /// Counts an object whose size is known only once the back-end has made it: there was room for it.
  static memory_claim of_made(const context_info& context, std::uint64_t bytes);
  /// Gives released memory time to be freed, if that is needed for so many bytes.
  static void make_room(const context_info& context, std::uint64_t bytes) {
    make_room(context, bytes, bytes);
  }

 private:
  static void make_room(const context_info& context, std::uint64_t bytes, std::uint64_t uncounted);
  void cancel();  // the object never came into existence

  std::vector<device_info*> on_;  // whole devices, which live as long as the process
  std::uint64_t bytes_ = 0;
  peer* home_ = nullptr;
};

}  // namespace outboard::frontend::opencl
