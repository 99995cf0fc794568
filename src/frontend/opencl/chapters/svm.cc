// Shared virtual memory: a pointer is the same number here and in kernels. Coarse-grained: the bytes travel
// when the program maps and unmaps them. Fine-grained: both ends have the same pages, and nothing travels.
#include <array>

#include "base/log.hh"
#include "base/pages.hh"
#include "frontend/opencl/answer.hh"
#include "frontend/opencl/ends.hh"
#include "frontend/opencl/shared_book.hh"
#include "frontend/opencl/transfer/transfer.hh"

namespace outboard::frontend::opencl::ends {
namespace {

constexpr cl_mem_flags access_flags = CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY;
/// Addresses are asked for so often until one is free here, too.
constexpr int tries = 4;

shared_book& book() { return shared_book::instance(); }
std::uint64_t number(const void* at) { return reinterpret_cast<std::uint64_t>(at); }

cl_device_svm_capabilities able(cl_device_id device) {
  return find<device_info>(device)->number<cl_device_svm_capabilities>(CL_DEVICE_SVM_CAPABILITIES);
}

/// Fine-grained memory and its atomics are of use only where all devices have them; coarse-grained that of
/// any.
bool can(const context_info& context, cl_svm_mem_flags flags, std::size_t size) {
  const auto& all = context.devices;
  const cl_device_svm_capabilities needed =
      ((flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) ? CL_DEVICE_SVM_FINE_GRAIN_BUFFER : 0) |
      ((flags & CL_MEM_SVM_ATOMICS) ? CL_DEVICE_SVM_ATOMICS : 0);
  return std::any_of(all.begin(), all.end(), able) &&
         std::all_of(all.begin(), all.end(),
                     [=](cl_device_id each) { return (able(each) & needed) == needed; }) &&
         std::none_of(all.begin(), all.end(), [size](cl_device_id device) {
           return size > find<device_info>(device)->number<cl_ulong>(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
         });
}

/// Access, and how fine it is: atomics are of fine-grained memory alone.
bool flags_fit(cl_svm_mem_flags flags) {
  constexpr cl_svm_mem_flags known = access_flags | CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS;
  const cl_svm_mem_flags access = flags & access_flags;
  const bool atomic_only = (flags & CL_MEM_SVM_ATOMICS) && !(flags & CL_MEM_SVM_FINE_GRAIN_BUFFER);
  return (flags & ~known) == 0 && (access & (access - 1)) == 0 && !atomic_only;
}

/// `pages`: of a fine-grained block.
cl_int ask_for_block(const marshal::opencl::shared_memory_body& body, std::uint64_t& address,
                     unique_fd& pages) {
  message m(opcode::clSVMAlloc);
  marshal::put_body(m.body(), body);
  if (const cl_int code = m.call({}, nullptr, &pages); code != CL_SUCCESS) return code;
  wire::reader reply = m.reply();
  address = marshal::take_body<marshal::opencl::address_body>(reply).address;
  return reply.finished() ? CL_SUCCESS : m.malformed();
}

void give_up_block(std::uint64_t address) {
  (void)post_body(opcode::clSVMFree, marshal::opencl::address_body{address});
}

/// A part of a block of the queue's context.
cl_int check_part(const command& c, const void* at, std::size_t size) {
  if (c.code() != CL_SUCCESS) return c.code();
  if (!at || size == 0) return CL_INVALID_VALUE;
  const auto found = book().find(at, size);
  return found && found->whole && found->context == c.context() ? CL_SUCCESS : CL_INVALID_VALUE;
}

place_body place_of(const void* at, std::size_t size) {
  place_body place;
  place.form = marshal::opencl::place_form::shared;
  place.offset = number(at);
  place.size = size;
  return place;
}

/// Nothing travels: the device puts its commands in order.
cl_int map_same_pages(command& c, cl_bool blocking, cl_map_flags flags, void* at, std::size_t size) {
  message m(opcode::clEnqueueSVMMap);
  marshal::put_body(
      m.body(), marshal::opencl::shared_map_body{c.body(), flags, number(at), size, blocking != CL_FALSE});
  return c.done(blocking ? m.call() : m.post());
}

/// Once all before it is done: both ends are the program's own memory, which no device sees.
cl_int copy_here(command& c, cl_command_queue queue, void* to, const void* from, std::size_t size,
                 cl_uint count, const cl_event* waits) {
  cl_event before = nullptr;
  cl_int code = ends::clEnqueueMarkerWithWaitList(queue, count, waits, &before);
  if (code != CL_SUCCESS) return code;
  code = ends::clWaitForEvents(1, &before);
  (void)release(before);
  if (code != CL_SUCCESS) return code;
  std::memcpy(to, from, size);
  return c.mark();
}

/// What clEnqueueSVMFree was given, until the queue is there.
struct frees {
  using function = void(CL_CALLBACK*)(cl_command_queue, cl_uint, void*[], void*);
  needed<cl_command_queue> queue;
  cl_context context = nullptr;
  std::vector<void*> pointers;
  function run = nullptr;
  void* data = nullptr;

  static void CL_CALLBACK reached(cl_event, cl_int, void* given) {
    const std::unique_ptr<frees> mine(static_cast<frees*>(given));
    if (mine->run) {
      mine->run(mine->queue.get(), static_cast<cl_uint>(mine->pointers.size()), mine->pointers.data(),
                mine->data);
    } else {
      for (void* const each : mine->pointers) ends::clSVMFree(mine->context, each);
    }
  }
};

}  // namespace

void* clSVMAlloc(cl_context context, cl_svm_mem_flags flags, std::size_t size, cl_uint alignment) {
  const auto* const in = find<context_info>(context);
  if (!in || size == 0 || !flags_fit(flags) || (alignment & (alignment - 1)) != 0 || !can(*in, flags, size))
    return nullptr;
  const bool fine = (flags & CL_MEM_SVM_FINE_GRAIN_BUFFER) != 0;
  memory_claim claim;
  if (memory_claim::take(*in, fine ? page_up(size) : size, claim) != CL_SUCCESS) return nullptr;
  const marshal::opencl::shared_memory_body body{id_of(context), flags, size, alignment};
  std::vector<std::uint64_t> in_use;
  std::uint64_t address = 0;
  bool made = false;
  unique_fd pages;
  while (!made && in_use.size() < tries && ask_for_block(body, address, pages) == CL_SUCCESS) {
    made = fine == static_cast<bool>(pages) && book().add(address, size, context, pages.get());
    if (!made) in_use.push_back(address);  // kept until another one was found
  }
  if (made) book().charge(address, std::move(claim));
  for (const std::uint64_t each : in_use) give_up_block(each);
  if (!made && !in_use.empty()) {
    log::warn("no shared virtual memory of ", size, " bytes: this process ",
              fine ? "cannot have the server's pages" : "has something", " at any of the ", in_use.size(),
              " places that the device gave");
  }
  return made ? reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)) : nullptr;
}

void clSVMFree(cl_context, void* pointer) {
  const auto block = pointer ? book().remove(pointer) : std::nullopt;
  if (!block) return;
  const at_home here(cell_of(block->context.get()));
  give_up_block(number(pointer));
}

/// A marker in the queue, and our own end of the memory once that is reached.
cl_int clEnqueueSVMFree(cl_command_queue queue, cl_uint count, void* pointers[], frees::function run,
                        void* data, cl_uint waiting, const cl_event* waits, cl_event* event) {
  const command c(queue, waiting, waits, event, CL_COMMAND_SVM_FREE);
  if (c.code() != CL_SUCCESS) return c.code();
  if (count == 0 || !pointers) return CL_INVALID_VALUE;
  auto given = std::make_unique<frees>();
  given->queue = needed(queue);
  given->context = c.context();
  given->pointers.assign(pointers, pointers + count);
  given->run = run, given->data = data;
  cl_event reached = nullptr;
  cl_int code = ends::clEnqueueMarkerWithWaitList(queue, waiting, waits, &reached);
  if (code != CL_SUCCESS) return code;
  find<event_info>(reached)->type = CL_COMMAND_SVM_FREE;
  code = ends::clSetEventCallback(reached, CL_COMPLETE, frees::reached, given.get());
  if (code == CL_SUCCESS) (void)given.release();
  if (event && code == CL_SUCCESS) return *event = reached, CL_SUCCESS;
  (void)release(reached);
  return code;
}

cl_int clEnqueueSVMMemcpy(cl_command_queue queue, cl_bool blocking, void* to, const void* from,
                          std::size_t size, cl_uint count, const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_SVM_MEMCPY);
  if (c.code() != CL_SUCCESS) return c.code();
  if (!to || !from || size == 0) return CL_INVALID_VALUE;
  const std::uint64_t a = number(to), b = number(from);
  if (a < b + size && b < a + size) return CL_MEM_COPY_OVERLAP;
  const bool to_shared = book().find(to).has_value(), from_shared = book().find(from).has_value();
  if (to_shared) {
    if (const cl_int code = check_part(c, to, size); code != CL_SUCCESS) return code;
  }
  if (from_shared) {
    if (const cl_int code = check_part(c, from, size); code != CL_SUCCESS) return code;
  }
  if (!to_shared && !from_shared) return copy_here(c, queue, to, from, size, count, waits);
  if (!from_shared) return write(c, place_of(to, size), row_of(from, size));
  if (!to_shared) return read(c, place_of(from, size), row_of(to, size), blocking);
  const marshal::opencl::shared_copy_body body{c.body(), a, b, size, blocking != CL_FALSE};
  message m(opcode::clEnqueueSVMMemcpy);
  marshal::put_body(m.body(), body);
  return c.done(blocking ? m.call() : m.post());
}

cl_int clEnqueueSVMMemFill(cl_command_queue queue, void* at, const void* pattern, std::size_t pattern_size,
                           std::size_t size, cl_uint count, const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_SVM_MEMFILL);
  if (const cl_int code = check_part(c, at, size); code != CL_SUCCESS) return code;
  const bool sized = pattern_size && pattern_size <= 128 && (pattern_size & (pattern_size - 1)) == 0;
  if (!pattern || !sized || number(at) % pattern_size || size % pattern_size) return CL_INVALID_VALUE;
  const auto* const first = static_cast<const std::uint8_t*>(pattern);
  return c.done(post_body(
      opcode::clEnqueueSVMMemFill,
      marshal::opencl::shared_fill_body{c.body(), number(at), size, {first, first + pattern_size}}));
}

/// What will be overwritten as a whole is not fetched: its first byte stands for the order of things.
cl_int clEnqueueSVMMap(cl_command_queue queue, cl_bool blocking, cl_map_flags flags, void* at,
                       std::size_t size, cl_uint count, const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_SVM_MAP);
  if (const cl_int code = check_part(c, at, size); code != CL_SUCCESS) return code;
  if (!map_flags_fit(flags)) return CL_INVALID_VALUE;
  if (book().find(at)->same_pages) {
    const cl_int code = map_same_pages(c, blocking, flags, at, size);
    if (code == CL_SUCCESS) book().map({at, size, flags});
    return code;
  }
  const std::size_t fetched = (flags & CL_MAP_WRITE_INVALIDATE_REGION) ? 1 : size;
  const cl_int code = read(c, place_of(at, fetched), row_of(at, fetched), blocking);
  if (code == CL_SUCCESS) book().map({at, size, flags});
  return code;
}

cl_int clEnqueueSVMUnmap(cl_command_queue queue, void* at, cl_uint count, const cl_event* waits,
                         cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_SVM_UNMAP);
  if (const cl_int code = check_part(c, at, 1); code != CL_SUCCESS) return code;
  const auto part = book().unmap(at);
  if (!part) return CL_INVALID_VALUE;
  if (book().find(at)->same_pages)
    return c.done(
        post_body(opcode::clEnqueueSVMUnmap, marshal::opencl::shared_unmap_body{c.body(), number(at)}));
  const bool changed = (part->flags & map_writes) && !still_come_to(row_of(at, part->size).extent());
  if (!changed) return c.mark();
  return write(c, place_of(at, part->size), row_of(at, part->size));
}

cl_int clEnqueueSVMMigrateMem(cl_command_queue queue, cl_uint number_of, const void** pointers,
                              const std::size_t* sizes, cl_mem_migration_flags flags, cl_uint count,
                              const cl_event* waits, cl_event* event) {
  command c(queue, count, waits, event, CL_COMMAND_SVM_MIGRATE_MEM);
  if (c.code() != CL_SUCCESS) return c.code();
  constexpr cl_mem_migration_flags known =
      CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED;
  if (number_of == 0 || !pointers || (flags & ~known) != 0) return CL_INVALID_VALUE;
  marshal::opencl::shared_migration_body body;
  body.flags = flags;
  for (cl_uint i = 0; i < number_of; ++i) {
    const std::size_t size = sizes ? sizes[i] : 0;
    if (const cl_int code = check_part(c, pointers[i], size ? size : 1); code != CL_SUCCESS) return code;
    body.addresses.push_back(number(pointers[i]));
    body.sizes.push_back(size);
  }
  body.command = c.body();
  return c.done(post_body(opcode::clEnqueueSVMMigrateMem, body));
}

/// Nothing need be asked: which of a kernel's arguments are pointers its build has told.
cl_int clSetKernelArgSVMPointer(cl_kernel kernel, cl_uint index, const void* value) {
  auto* const info = find<kernel_info>(kernel);
  if (!info) return CL_INVALID_KERNEL;
  if (index >= info->about->arguments.size()) return CL_INVALID_ARG_INDEX;
  const auto& about = info->about->arguments[index];
  const bool pointer =
      about.address == CL_KERNEL_ARG_ADDRESS_GLOBAL || about.address == CL_KERNEL_ARG_ADDRESS_CONSTANT;
  if ((about.known && !pointer) || (value && !book().find(value))) return CL_INVALID_ARG_VALUE;
  const std::lock_guard lock(info->mutex);
  const cl_int code = post_body(opcode::clSetKernelArgSVMPointer, marshal::opencl::kernel_addresses_body{
                                                                      id_of(kernel), index, {number(value)}});
  if (code == CL_SUCCESS) info->given[index] = sizeof value;
  return code;
}

cl_int clSetKernelExecInfo(cl_kernel kernel, cl_kernel_exec_info name, std::size_t size, const void* value) {
  if (!alive(kernel)) return CL_INVALID_KERNEL;
  if (!value) return CL_INVALID_VALUE;
  if (name == CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM) {
    cl_bool wanted = CL_FALSE;
    if (size != sizeof wanted) return CL_INVALID_VALUE;
    std::memcpy(&wanted, value, sizeof wanted);
    return wanted ? CL_INVALID_OPERATION : CL_SUCCESS;
  }
  if (name != CL_KERNEL_EXEC_INFO_SVM_PTRS || size == 0 || size % sizeof(void*)) return CL_INVALID_VALUE;
  marshal::opencl::kernel_addresses_body body{id_of(kernel), 0, {}};
  const auto* const list = static_cast<const void* const*>(value);
  for (std::size_t i = 0; i < size / sizeof(void*); ++i) {
    if (list[i] && !book().find(list[i])) return CL_INVALID_VALUE;
    body.addresses.push_back(number(list[i]));
  }
  return post_body(opcode::clSetKernelExecInfo, body);
}

}  // namespace outboard::frontend::opencl::ends
