// What every command has: a queue, events to wait for, and perhaps an event to return. Thread-bound; exists
// during one call.
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

  /// CL_SUCCESS, or the error of the queue, the events' context, or their list.
  cl_int code() const { return code_; }
  cl_context context() const { return info_ ? info_->context.get() : nullptr; }
  cl_device_id device() const { return info_->device; }

  /// Checks that the object is of the queue's context. Returns CL_SUCCESS, CL_INVALID_CONTEXT, or the error
  /// for a value that is not an object.
  cl_int check(cl_mem memory) const;

  /// Makes the event if one is wanted; returns its id or 0. Call it once everything is checked.
  std::uint64_t event();
  /// The common fields of a hand-written request, including event(). If a command is given in parts, the
  /// first one waits for the events and the last one returns one.
  marshal::opencl::command_body body(bool first = true, bool last = true);
  /// Do the queue's commands run one after the other?
  bool in_order() const { return !(info_->bits & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE); }
  /// May it be given in parts? Not if the queue keeps no order, nor if its event must report times.
  bool may_be_parted() const;
  /// Enqueues a marker instead of the command, if the command has nothing else to do. Returns the function's
  /// result.
  cl_int mark();
  /// Returns the function's result, and gives the program its event if there is one.
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
