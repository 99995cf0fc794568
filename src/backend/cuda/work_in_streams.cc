#include "backend/cuda/work_in_streams.hh"

#include "api/cuda/line_words.hh"

namespace outboard::backend {

bool leaves_no_work(std::uint32_t opcode) {
  return api::says(static_cast<api::opcode>(opcode), api::line_word::no_work);
}

}  // namespace outboard::backend
