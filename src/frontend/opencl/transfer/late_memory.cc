#include "frontend/opencl/transfer/late_memory.hh"

#include "frontend/session.hh"

namespace outboard::frontend::opencl {

bool late_memory::kept::is_late() const { return !from->lost() && from->lands_in(part); }

void late_memory::keep(std::unique_ptr<std::byte[]> memory, std::span<const std::byte> part, session& from) {
  std::erase_if(all_, [](const kept& each) { return !each.is_late(); });
  all_.push_back({std::move(memory), part, &from});
}

late_memory::~late_memory() {
  for (kept& each : all_) {
    if (each.is_late()) (void)each.memory.release();
  }
}

}  // namespace outboard::frontend::opencl
