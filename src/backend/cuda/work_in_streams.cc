#include "backend/cuda/work_in_streams.hh"

#include "api/cuda/functions.hh"

namespace outboard::backend {

bool leaves_no_work(std::uint32_t opcode) { return api::about(static_cast<api::opcode>(opcode)).workless; }

}  // namespace outboard::backend
