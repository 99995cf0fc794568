// The end of an object: the program's own functions run first, then the server is notified.
#include "frontend/opencl/death.hh"

#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl {
namespace {

template <auto Op, class H>
void tell(cell& dying, lane& own) {
  const answered how = own.how;  // it is not an answer to the current call
  if (back_ends::instance().server()) (void)remote<Op>(0, reinterpret_cast<H>(&dying));
  own.how = std::max(how, answered::locally);
}

}  // namespace

kernel_info::~kernel_info() {
  if (auto* const of = find<program_info>(program.get())) of->kernels.fetch_sub(1);
}

void tell_death(cell& dying) {
  lane& own = this_lane();
  const at_home here(&dying);
  switch (dying.kind.load(std::memory_order_acquire)) {
    case handle_kind::cl_context:
      static_cast<context_info*>(dying.info)->at_end.run();
      static_cast<context_info*>(dying.info)->small.area.reset();
      static_cast<context_info*>(dying.info)->large.area.reset();
      return tell<opcode::clReleaseContext, cl_context>(dying, own);
    case handle_kind::cl_command_queue:
      return tell<opcode::clReleaseCommandQueue, cl_command_queue>(dying, own);
    case handle_kind::cl_mem:
      static_cast<memory_info*>(dying.info)->at_end.run();
      return tell<opcode::clReleaseMemObject, cl_mem>(dying, own);
    case handle_kind::cl_program:
      return tell<opcode::clReleaseProgram, cl_program>(dying, own);
    case handle_kind::cl_kernel:
      return tell<opcode::clReleaseKernel, cl_kernel>(dying, own);
    case handle_kind::cl_sampler:
      return tell<opcode::clReleaseSampler, cl_sampler>(dying, own);
    case handle_kind::cl_device:  // a part of a device; the others live as long as the process
      return tell<opcode::clReleaseDevice, cl_device_id>(dying, own);
    case handle_kind::cl_event:
      return tell<opcode::clReleaseEvent, cl_event>(dying, own);
    default:
      return;
  }
}

}  // namespace outboard::frontend::opencl
