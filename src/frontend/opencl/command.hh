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

  /// CL_SUCCESS, or the code for what is wrong with the queue, the context of the events, or their list.
  cl_int code() const { return code_; }
  cl_context context() const { return info_ ? info_->context.get() : nullptr; }
  cl_device_id device() const { return info_->device; }

  /// The object must be of the queue's context. CL_SUCCESS, CL_INVALID_CONTEXT, or the code for an invalid
  /// object.
  cl_int check(cl_mem memory) const;

  /// Makes the event if one is wanted; its id or 0. To be called once everything is checked.
  std::uint64_t event();
  /// The parts of a hand-written request; with event(). If a command is given in parts, the first part waits
  /// for the events and the last one returns an event.
  marshal::opencl::command_body body(bool first = true, bool last = true);
  /// Whether the queue's commands run one after the other.
  bool in_order() const { return !(info_->bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE); }
  /// Whether it may be given in parts: not if the queue keeps no order, nor if its event has times to report.
  bool may_be_parted() const;
  /// A marker in the command's place, if there is nothing else to do. Returns the function's result.
  cl_int mark();
  /// Returns the function's result; the program gets its event if there is one.
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
