#include "frontend/opencl/home.hh"

#include "frontend/opencl/objects.hh"

namespace outboard::frontend::opencl {
namespace {

thread_local peer* home = nullptr;

}  // namespace

peer* home_of_call() { return home; }

at_home::at_home(peer* there) : before_(home) { home = there; }

at_home::at_home(const cell* named) : before_(home) {
  if (named && named->kind.load(std::memory_order_acquire) != handle_kind::none) home = named->home;
}

at_home::~at_home() { home = before_; }

}  // namespace outboard::frontend::opencl
