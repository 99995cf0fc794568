#include "backend/opencl/kernel_arguments.hh"

#include <string>

#include "backend/opencl/questions.hh"

namespace outboard::backend::opencl {

kernel_arguments::kernel_facts& kernel_arguments::facts_of(cl_kernel kernel) {
  const auto [at, fresh] = known_.try_emplace(kernel);
  if (fresh) {
    const auto count = value_of<cl_uint>([&](std::size_t size, void* to, std::size_t* wanted) {
      return table_.clGetKernelInfo(kernel, CL_KERNEL_NUM_ARGS, size, to, wanted);
    });
    at->second.arguments.resize(count.value_or(0));
  }
  return at->second;
}

kernel_arguments::meant kernel_arguments::ask(cl_kernel kernel, cl_uint index) const {
  if (!table_.clGetKernelArgInfo) return meant::untold;
  const auto ask = [&](cl_kernel_arg_info name) {
    return [this, kernel, index, name](std::size_t size, void* to, std::size_t* wanted) {
      return table_.clGetKernelArgInfo(kernel, index, name, size, to, wanted);
    };
  };
  const auto address = value_of<cl_kernel_arg_address_qualifier>(ask(CL_KERNEL_ARG_ADDRESS_QUALIFIER));
  if (!address) return meant::untold;
  if (*address == CL_KERNEL_ARG_ADDRESS_LOCAL) return meant::local;
  if (*address != CL_KERNEL_ARG_ADDRESS_PRIVATE) return meant::memory;
  const auto qualifier = value_of<cl_kernel_arg_type_qualifier>(ask(CL_KERNEL_ARG_TYPE_QUALIFIER));
  if (qualifier && (*qualifier & CL_KERNEL_ARG_TYPE_PIPE)) return meant::memory;
  const std::string type = text_of(ask(CL_KERNEL_ARG_TYPE_NAME));
  if (type == "sampler_t") return meant::sampler;
  if (type == "queue_t") return meant::queue;
  if (type.starts_with("image")) return meant::memory;
  return meant::own_bytes;
}

kernel_arguments::meant& kernel_arguments::told(cl_kernel kernel, cl_uint index) {
  auto& all = facts_of(kernel).arguments;
  if (index >= all.size()) return no_such_ = meant::none;
  meant& known = all[index].what;
  if (known == meant::unasked) known = ask(kernel, index);
  return known;
}

/// Tries an argument out. Platforms accept zeros for bytes and for memory (as a null pointer), and a size
/// without bytes for local memory and for memory. For samplers, queues and images most accept neither, and
/// say what is missing. PoCL takes a sampler that has one of the program's own type names for memory. The
/// argument was not set before, and its real value follows.
void kernel_arguments::try_out(cl_kernel kernel, cl_uint index, meant& known) const {
  if (known != meant::untold && known != meant::own_bytes) return;
  constexpr void* nothing = nullptr;
  const bool anywhere = known == meant::untold;
  const cl_int zeros = table_.clSetKernelArg(kernel, index, sizeof nothing, &nothing);
  const bool alone = table_.clSetKernelArg(kernel, index, sizeof nothing, nullptr) == CL_SUCCESS;
  if (alone) {
    known = !anywhere ? meant::unknown : zeros == CL_SUCCESS ? meant::memory : meant::local;
  } else if (zeros == CL_SUCCESS) {
    known = anywhere ? meant::bytes_perhaps : meant::bytes;
  } else if (zeros == CL_INVALID_SAMPLER) {
    known = meant::sampler;
  } else if (zeros == CL_INVALID_DEVICE_QUEUE) {
    known = meant::queue;
  } else if (zeros == CL_INVALID_MEM_OBJECT) {
    known = meant::memory;
  }
}

cl_int kernel_arguments::check_value(cl_kernel kernel, cl_uint index, std::size_t size) {
  meant& known = told(kernel, index);
  if (known == meant::none) return CL_INVALID_ARG_INDEX;
  if (size == sizeof(void*)) try_out(kernel, index, known);
  if (known == meant::untold || known == meant::own_bytes) {
    // It is an object, or bytes of another size. As many zero bytes, which point nowhere, get the same
    // answer.
    const std::vector<std::byte> zeros(size);
    const cl_int code = table_.clSetKernelArg(kernel, index, size, zeros.data());
    if (code == CL_SUCCESS && known == meant::own_bytes) known = meant::bytes;
    return code;
  }
  if (known == meant::bytes || known == meant::bytes_perhaps) return CL_SUCCESS;
  return size == sizeof(void*) ? CL_INVALID_ARG_VALUE : CL_INVALID_ARG_SIZE;
}

cl_int kernel_arguments::check_object(cl_kernel kernel, cl_uint index, api::handle_kind kind) {
  const bool memory = kind == api::handle_kind::cl_mem, sampler = kind == api::handle_kind::cl_sampler,
             queue = kind == api::handle_kind::cl_command_queue;
  meant& known = told(kernel, index);
  try_out(kernel, index, known);
  bool fits = false;
  switch (known) {
    case meant::none:
      return CL_INVALID_ARG_INDEX;
    case meant::memory:
      fits = memory || kind == api::handle_kind::none;
      break;
    case meant::sampler:
      fits = sampler;
      break;
    case meant::queue:
      fits = queue;
      break;
    case meant::untold:  // it did not accept zeros
    case meant::bytes_perhaps:
      fits = memory || sampler || queue;
      break;
    case meant::own_bytes:
      fits = sampler || queue;
      break;
    default:
      break;
  }
  return fits ? CL_SUCCESS : CL_INVALID_ARG_VALUE;
}

cl_int kernel_arguments::check_address(cl_kernel kernel, cl_uint index) {
  meant& known = told(kernel, index);
  if (known == meant::none) return CL_INVALID_ARG_INDEX;
  if (known == meant::untold) try_out(kernel, index, known);
  return known == meant::memory ? CL_SUCCESS : CL_INVALID_ARG_VALUE;
}

void kernel_arguments::note(cl_kernel kernel, cl_uint index, cl_int code) {
  kernel_facts& facts = facts_of(kernel);
  if (index >= facts.arguments.size()) return;
  cl_int& kept = facts.arguments[index].code;
  facts.failures += (code != CL_SUCCESS) - (kept != CL_SUCCESS);
  kept = code;
}

cl_int kernel_arguments::failed(cl_kernel kernel) const {
  const auto found = known_.find(kernel);
  if (found == known_.end() || found->second.failures == 0) return CL_SUCCESS;
  for (const argument& each : found->second.arguments) {
    if (each.code != CL_SUCCESS) return each.code;
  }
  return CL_SUCCESS;
}

}  // namespace outboard::backend::opencl
