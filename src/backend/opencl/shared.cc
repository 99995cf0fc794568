// Shared virtual memory: blocks at addresses of the device's choice. The client names addresses; only those
// in its own blocks reach the device.
#include <algorithm>
#include <optional>

#include "backend/opencl/command_work.hh"
#include "backend/opencl/ends.hh"
#include "backend/opencl/questions.hh"
#include "backend/opencl/short_wait.hh"
#include "backend/opencl/with_room.hh"
#include "backend/session/session_core.hh"
#include "base/log.hh"
#include "base/pages.hh"

namespace outboard::backend::opencl {
namespace {

using namespace marshal::opencl;
using api::opencl::function_table;

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

/// A command on shared memory; `enqueue` gives it to the device once its addresses are known to be good.
/// `work`: what a profile shows of it.
template <class Enqueue>
outcome run(call& c, const command_body& body, bool good, bool there, bool blocking, Enqueue&& enqueue,
            const std::optional<api::work_record>& work = std::nullopt) {
  const native_command command(c, body);
  cl_int code = command.code;
  if (code == CL_SUCCESS && !there) code = CL_INVALID_OPERATION;
  if (code == CL_SUCCESS && !good) code = CL_INVALID_VALUE;
  cl_event done = nullptr;
  const std::uint64_t since = work ? own(c).records().about_to_give() : 0;
  if (code == CL_SUCCESS) code = enqueue(command, &done);
  if (code == CL_SUCCESS && since) own(c).records().given(since, command.queue, done, *work);
  if (!given(c, command, body.event, done, code)) return outcome::malformed();
  if (code != CL_SUCCESS) return outcome::answer(code);
  const function_table& table = own(c).table();
  if (blocking) {
    if (!complete_soon(c, {&done, 1})) c.give_up_turn();
    code = table.clWaitForEvents(1, &done);
  }
  table.clReleaseEvent(done);
  return outcome::answer(code);
}

std::uint64_t number(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

/// Are they the processor's own, whose memory is ordinary memory of this process? Others may know it by its
/// pages.
bool all_take_fine(const function_table& table, cl_context context) {
  const auto devices = devices_of(table, context);
  return !devices.empty() &&
         std::ranges::all_of(devices, [&](cl_device_id each) { return takes_fine_grain(table, each); });
}

/// Whole pages inside a block of the device's, which the client gets, too. Platforms align no block to pages.
cl_int allocate_fine(call& c, const shared_memory_body& body, shared_memory::block& made,
                     std::uint64_t& address) {
  shared_pages& pages = own(c).pages();
  const function_table& table = own(c).table();
  constexpr std::uint64_t most = 1ull << 47;
  if (!pages.is_open() || body.size > most || !all_take_fine(table, made.context))
    return CL_INVALID_OPERATION;
  const std::uint64_t step = std::max<std::uint64_t>(page_size(), body.alignment), size = page_up(body.size);
  made.native = number(table.clSVMAlloc(made.context, body.flags, size + step, body.alignment));
  if (!made.native) return CL_MEM_OBJECT_ALLOCATION_FAILURE;
  address = (made.native + step - 1) / step * step;
  if (pages.share(address, size)) {
    c.core.send_descriptor(c.header.ticket, pages.file());
    return CL_SUCCESS;
  }
  log::warn("no fine-grained memory of ", body.size, " bytes: what the device gave is no ordinary memory");
  table.clSVMFree(made.context, pointer(made.native));
  return CL_OUT_OF_RESOURCES;
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
  if (code != CL_SUCCESS) return outcome::answer(code);
  const bool fine = (body.flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) != 0;
  shared_memory::block made{body.size, context, 0};
  address_body reply;
  code = with_room(c, context, fine ? page_up(body.size) : body.size, made.held, [&]() -> cl_int {
    if (fine) return allocate_fine(c, body, made, reply.address);
    reply.address = number(table.clSVMAlloc(context, body.flags, body.size, body.alignment));
    return reply.address ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
  });
  if (code != CL_SUCCESS) return outcome::answer(code);
  table.clRetainContext(context);
  own(c).shared().add(reply.address, std::move(made));
  marshal::put_body(c.reply, reply);
  return outcome::answer(CL_SUCCESS);
}

outcome clSVMFree(call& c) {
  address_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const auto block = own(c).shared().take(body.address);
  if (!block.context) return outcome::answer(CL_INVALID_VALUE);
  // Memory that the client still has must not become part of anything else.
  if (!block.native || own(c).pages().take_back(body.address, page_up(block.size)))
    own(c).table().clSVMFree(block.context, pointer(block.native ? block.native : body.address));
  own(c).table().clReleaseContext(block.context);
  return outcome::answer(CL_SUCCESS);
}

outcome clEnqueueSVMMemcpy(call& c) {
  shared_copy_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const shared_memory& all = own(c).shared();
  const bool good = all.holds(body.to, body.size) && all.holds(body.from, body.size);
  auto* const copy = own(c).table().clEnqueueSVMMemcpy;
  return run(
      c, body.command, good, copy != nullptr, body.blocking,
      [&](const native_command& command, cl_event* done) {
        return copy(command.queue, CL_FALSE, pointer(body.to), pointer(body.from), body.size, command.count(),
                    command.list(), done);
      },
      copy_of(api::memory_side::device, api::memory_side::device, body.size, c.header.ticket));
}

outcome clEnqueueSVMMemFill(call& c) {
  shared_fill_body body;
  if (!take_all(c, body)) return outcome::malformed();
  const std::size_t unit = body.pattern.size();
  const bool sized = unit && unit <= 128 && (unit & (unit - 1)) == 0 && body.size % unit == 0;
  auto* const fill = own(c).table().clEnqueueSVMMemFill;
  return run(
      c, body.command, sized && own(c).shared().holds(body.address, body.size), fill != nullptr, false,
      [&](const native_command& command, cl_event* done) {
        return fill(command.queue, pointer(body.address), body.pattern.data(), unit, body.size,
                    command.count(), command.list(), done);
      },
      fill_of(api::memory_side::device, body.size, c.header.ticket));
}

/// Of memory that the client has, too: nothing moves, and the device puts its commands in order.
outcome clEnqueueSVMMap(call& c) {
  shared_map_body body;
  if (!take_all(c, body)) return outcome::malformed();
  auto* const map = own(c).table().clEnqueueSVMMap;
  return run(c, body.command, own(c).shared().holds(body.address, body.size), map != nullptr, body.blocking,
             [&](const native_command& command, cl_event* done) {
               return map(command.queue, CL_FALSE, body.flags, pointer(body.address), body.size,
                          command.count(), command.list(), done);
             });
}

outcome clEnqueueSVMUnmap(call& c) {
  shared_unmap_body body;
  if (!take_all(c, body)) return outcome::malformed();
  auto* const unmap = own(c).table().clEnqueueSVMUnmap;
  return run(c, body.command, own(c).shared().holds(body.address, 1), unmap != nullptr, false,
             [&](const native_command& command, cl_event* done) {
               return unmap(command.queue, pointer(body.address), command.count(), command.list(), done);
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
  if (code != CL_SUCCESS) return outcome::answer(code);
  if (!set) code = CL_INVALID_OPERATION;
  if (code == CL_SUCCESS) code = check_addresses(c, body.addresses);
  // Of a sampler the platform would look for its object there.
  if (code == CL_SUCCESS) code = own(c).arguments().check_address(kernel, body.index);
  if (code == CL_SUCCESS) code = set(kernel, body.index, pointer(body.addresses[0]));
  own(c).arguments().note(kernel, body.index, code);
  return outcome::answer(code);
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
  return outcome::answer(code);
}

}  // namespace ends
}  // namespace outboard::backend::opencl
