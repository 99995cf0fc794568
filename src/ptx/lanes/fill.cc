// Fills the table of steps for one instruction set level.
#include "ptx/lanes/loop.hh"

namespace outboard::ptx::OUTBOARD_LANES {

void fill(step_table& t) {
  fill_integer(t);
  fill_float(t);
  fill_half(t);
  fill_convert(t);
  fill_memory(t);
  fill_atomic(t);
  fill_control(t);
  fill_matrix(t);
}

}  // namespace outboard::ptx::OUTBOARD_LANES
