// Shared virtual memory: blocks at addresses of the device's choice. The client names addresses; only those
// in its own blocks reach the device.
#include "backend/opencl/ends.hh"
#include "backend/opencl/questions.hh"
#include "backend/opencl/short_wait.hh"

namespace outboard::backend::opencl {
namespace {

using namespace marshal::opencl;
using api::opencl::function_table;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// A command on shared memory; `enqueue` gives it to the device once its addresses are known to be good.
template <class Enqueue>
outcome run(call& c, const command_body& body, bool good, bool there, bool blocking, Enqueue&& enqueue) {
  const native_command command(c, body);
  cl_int code = command.code;
  if (code == CL_SUCCESS && !there) code = CL_INVALID_OPERATION;
  if (code == CL_SUCCESS && !good) code = CL_INVALID_VALUE;
  cl_event done = nullptr;
  if (code == CL_SUCCESS) code = enqueue(command, &done);
  if (!given(c, command, body.event, done, code)) return outcome::malformed();
  if (code != CL_SUCCESS) return outcome::answer_code(code);
  const function_table& table = own(c).table();
  if (blocking) {
    if (!complete_soon(c, {&done, 1})) c.give_up_turn();
    code = table.clWaitForEvents(1, &done);
  }
  table.clReleaseEvent(done);
  return outcome::answer_code(code);
}

/// Those of one kernel: the null pointer is nobody's.
cl_int check_addresses(call& c, const ids& addresses) {
  for (const std::uint64_t each : addresses) {
    if (each && !own(c).shared().holds(each, 1)) return CL_INVALID_ARG_VALUE;
  }
  return CL_SUCCESS;
}

}  // namespace

namespace ends {

outcome clSVMAlloc(call& c) {
  shared_memory_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const function_table& table = own(c).table();
  cl_context context = nullptr;
  cl_int code = resolve(c, body.context, context);
  if (code == CL_SUCCESS && (!table.clSVMAlloc || !table.clSVMFree)) code = CL_INVALID_OPERATION;
  if (code != CL_SUCCESS) return outcome::answer_code(code);
  void* const made = table.clSVMAlloc(context, body.flags, body.size, body.alignment);
  if (!made) return outcome::answer_code(CL_MEM_OBJECT_ALLOCATION_FAILURE);
  table.clRetainContext(context);
  const address_body reply{reinterpret_cast<std::uint64_t>(made)};
  own(c).shared().add(reply.address, {body.size, context});
  marshal::put_body(c.reply, reply);
  return outcome::answer_code(CL_SUCCESS);
}

outcome clSVMFree(call& c) {
  address_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const auto block = own(c).shared().take(body.address);
  if (!block.context) return outcome::answer_code(CL_INVALID_VALUE);
  own(c).table().clSVMFree(block.context, pointer(body.address));
  own(c).table().clReleaseContext(block.context);
  return outcome::answer_code(CL_SUCCESS);
}

outcome clEnqueueSVMMemcpy(call& c) {
  shared_copy_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const shared_memory& all = own(c).shared();
  const bool good = all.holds(body.to, body.size) && all.holds(body.from, body.size);
  auto* const copy = own(c).table().clEnqueueSVMMemcpy;
  return run(c, body.command, good, copy != nullptr, body.blocking,
             [&](const native_command& command, cl_event* done) {
               return copy(command.queue, CL_FALSE, pointer(body.to), pointer(body.from), body.size,
                           command.count(), command.list(), done);
             });
}

outcome clEnqueueSVMMemFill(call& c) {
  shared_fill_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const std::size_t unit = body.pattern.size();
  const bool sized = unit && unit <= 128 && (unit & (unit - 1)) == 0 && body.size % unit == 0;
  auto* const fill = own(c).table().clEnqueueSVMMemFill;
  return run(c, body.command, sized && own(c).shared().holds(body.address, body.size), fill != nullptr, false,
             [&](const native_command& command, cl_event* done) {
               return fill(command.queue, pointer(body.address), body.pattern.data(), unit, body.size,
                           command.count(), command.list(), done);
             });
}

outcome clEnqueueSVMMigrateMem(call& c) {
  shared_migration_body body;
  if (!take_all(c, body) || body.addresses.size() != body.sizes.size()) return outcome::malformed();
  std::vector<const void*> pointers;
  std::vector<std::size_t> sizes;
  bool good = !body.addresses.empty();
  for (std::size_t i = 0; i < body.addresses.size(); ++i) {
    good = good && own(c).shared().holds(body.addresses[i], body.sizes[i] ? body.sizes[i] : 1);
    pointers.push_back(pointer(body.addresses[i]));
    sizes.push_back(body.sizes[i]);
  }
  auto* const migrate = own(c).table().clEnqueueSVMMigrateMem;
  return run(c, body.command, good, migrate != nullptr, false,
             [&](const native_command& command, cl_event* done) {
               return migrate(command.queue, static_cast<cl_uint>(pointers.size()), pointers.data(),
                              sizes.data(), body.flags, command.count(), command.list(), done);
             });
}

outcome clSetKernelArgSVMPointer(call& c) {
  kernel_addresses_body body;
  if (!take_all(c, body) || body.addresses.size() != 1) return outcome::malformed();
  auto* const set = own(c).table().clSetKernelArgSVMPointer;
  cl_kernel kernel = nullptr;
  cl_int code = resolve(c, body.kernel, kernel);
  if (code != CL_SUCCESS) return outcome::answer_code(code);
  if (!set) code = CL_INVALID_OPERATION;
  if (code == CL_SUCCESS) code = check_addresses(c, body.addresses);
  if (code == CL_SUCCESS) code = set(kernel, body.index, pointer(body.addresses[0]));
  own(c).note_argument(kernel, body.index, code);
  return outcome::answer_code(code);
}

outcome clSetKernelExecInfo(call& c) {
  kernel_addresses_body body;
  if (!take_all(c, body)) return outcome::malformed();
  auto* const set = own(c).table().clSetKernelExecInfo;
  cl_kernel kernel = nullptr;
  cl_int code = resolve(c, body.kernel, kernel);
  if (code == CL_SUCCESS && !set) code = CL_INVALID_OPERATION;
  if (code == CL_SUCCESS) code = check_addresses(c, body.addresses);
  std::vector<void*> pointers;
  for (const std::uint64_t each : body.addresses) pointers.push_back(pointer(each));
  if (code == CL_SUCCESS) {
    code = set(kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, pointers.size() * sizeof(void*), pointers.data());
  }
  return outcome::answer_code(code);
}

}  // namespace ends
}  // namespace outboard::backend::opencl
