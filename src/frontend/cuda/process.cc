#include "frontend/cuda/process.hh"

namespace outboard::frontend {

process& process::make() {
  static process* const the_one = new process;
  the_one_.store(the_one, std::memory_order_release);
  return *the_one;
}

}  // namespace outboard::frontend
