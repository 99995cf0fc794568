// What every command has: a queue, events to wait for, and an event to return. Thread-bound; for the time of
// one call.
#pragma once

#include "frontend/opencl/kinds.hh"
#include "frontend/opencl/message.hh"

namespace outboard::frontend::opencl {

class command {
 public:
  command(cl_command_queue queue, cl_uint count, const cl_event* waits, cl_event* event,
          cl_command_type type);
  ~command();
  command(const command&) = delete;
  command& operator=(const command&) = delete;

  /// CL_SUCCESS, or what is wrong with queue, context of the events, or their list.
  cl_int code() const { return code_; }
  cl_context context() const { return info_ ? info_->context.get() : nullptr; }
  cl_device_id device() const { return info_->device; }

  /// The object must be of the queue's context. CL_SUCCESS, CL_INVALID_CONTEXT, or that it is none.
  cl_int check(cl_mem memory) const;

  /// Makes the event if one is wanted; its id or 0. Once all is checked.
  std::uint64_t event();
  /// The parts of a hand-written request; with event(). Of a command that is given in parts the first one
  /// waits for the events and the last one gives one.
  marshal::opencl::command_body body(bool first = true, bool last = true);
  /// Do the queue's commands run one behind the other?
  bool in_order() const { return !(info_->bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE); }
  /// May it be given in parts? Not where the queue keeps no order, nor where its event has times to tell.
  bool may_be_parted() const;
  /// A marker in the command's place: all that there is to it. The function's answer.
  cl_int mark();
  /// The function's answer: the program gets its event if there is one.
  cl_int done(cl_int code);

 private:
  cl_command_queue queue_;
  cl_uint count_;
  const cl_event* waits_;
  cl_event* wanted_;
  cl_command_type type_;
  queue_info* info_;
  cl_int code_ = CL_SUCCESS;
  cell* made_ = nullptr;
};

}  // namespace outboard::frontend::opencl
