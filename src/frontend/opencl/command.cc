#include "frontend/opencl/command.hh"

namespace outboard::frontend::opencl {

command::command(cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event,
                 cl_command_type type)
    : queue_(queue),
      count_(count),
      waits_(waits),
      wanted_(event),
      type_(type),
      info_(find<queue_info>(queue)) {
  if (!info_ ||
      (info_->bits & CL_QUEUE_ON_DEVICE)) {  // a queue on the device accepts only commands of kernels
    code_ = CL_INVALID_COMMAND_QUEUE;
  } else if ((count == 0) != (waits == nullptr)) {
    code_ = CL_INVALID_EVENT_WAIT_LIST;
  }
  for (cl_uint i = 0; i < count && code_ == CL_SUCCESS; ++i) {
    const auto* const info = find<event_info>(waits[i]);
    if (!info) {
      code_ = CL_INVALID_EVENT_WAIT_LIST;
    } else if (info->context.get() != context()) {
      code_ = CL_INVALID_CONTEXT;
    }
  }
}

command::~command() {
  if (made_) discard(*made_);
}

cl_int command::check(cl_mem memory) const {
  const auto* const info = find<memory_info>(memory);
  if (!info) return CL_INVALID_MEM_OBJECT;
  return info->context.get() == context() ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

std::uint64_t command::event() {
  if (!wanted_) return 0;
  auto info = std::make_unique<event_info>();
  info->context = info_->context;
  info->queue = needed(queue_);
  info->type = type_;
  made_ = make(handle_kind::cl_event, std::move(info));
  return made_ ? made_->id : 0;
}

marshal::opencl::command_body command::body(bool first, bool last) {
  marshal::opencl::command_body body;
  body.queue = id_of(queue_);
  for (cl_uint i = 0; i < count_ && first; ++i) body.waits.push_back(id_of(waits_[i]));
  if (last) body.event = event();
  return body;
}

bool command::may_be_parted() const {
  const bool timed = wanted_ && (info_->bits & CL_QUEUE_PROFILING_ENABLE);
  return !timed && in_order();
}

cl_int command::mark() {
  return done(remote<opcode::clEnqueueMarkerWithWaitList>(event(), queue_, count_,
                                                          wire_list(waits_, count_).data(), wanted_));
}

cl_int command::done(cl_int code) {
  if (code == CL_SUCCESS && wanted_) *wanted_ = reinterpret_cast<cl_event>(std::exchange(made_, nullptr));
  return code;
}

}  // namespace outboard::frontend::opencl
