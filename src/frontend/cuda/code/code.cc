#include "frontend/cuda/code/code.hh"

#include <algorithm>

#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/copying/coherence.hh"
#include "frontend/cuda/gate.hh"
#include "frontend/memory/managed_blocks.hh"

namespace outboard::frontend::cuda {
namespace {

/// What a kernel may use of shared memory without asking for more; the driver counts its own variables in.
constexpr std::int32_t usual_shared = 48 << 10;

void adopt_facts(kernel_object& kernel, const marshal::kernel_info& facts) {
  kernel.facts = &facts;
  // Unknown static bytes: any dynamic ones make a launch doubtful, and a doubtful launch asks the driver.
  const std::int32_t left = facts.static_shared < 0 ? 0 : usual_shared - facts.static_shared;
  kernel.dynamic_shared_limit = static_cast<std::uint32_t>(left > 0 ? left : 0);
}

/// `from`: the kernel's module or library, or the same kernel under its other handle.
template <class Owner>
std::unique_ptr<kernel_object> make_kernel(std::string_view name, std::uint64_t parent, std::uint64_t context,
                                           const Owner& from) {
  auto kernel = std::make_unique<kernel_object>();
  kernel->name = name;
  kernel->parent = parent;
  kernel->context = context;
  kernel->contents = from.contents;
  kernel->local = from.local;
  kernel->dynamic_shared_limit = 0;
  if (const marshal::kernel_info* facts = from.contents->find_kernel(name)) adopt_facts(*kernel, *facts);
  return kernel;
}

/// Tells the server which object a new handle stands for. `ask`: whether there is such an object is known
/// there alone.
CUresult derive(lane& own, opcode_for<marshal::derive_body> code, const marshal::derive_body& body,
                bool ask) {
  typed_request r(code, own, body);
  return ask ? r.call() : r.post();
}

/// Reserves a handle for `info` and derives it; the handle dies again if that fails.
CUresult reserve_and_derive(lane& own, api::handle_kind kind, std::unique_ptr<object> info,
                            opcode_for<marshal::derive_body> code, std::uint64_t parent,
                            std::string_view name, bool ask, std::uint64_t& handle) {
  handle_table& table = process::instance().objects().handles(kind);
  const std::uint64_t made = table.reserve(std::move(info));
  if (!made) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = derive(own, code, {parent, made, std::string(name)}, ask);
  if (result != CUDA_SUCCESS) return table.release(made), result;
  handle = made;
  return CUDA_SUCCESS;
}

void end_kernel(api::handle_kind kind, std::uint64_t handle, freed_names& freed) {
  process& p = process::instance();
  if (const auto* kernel = static_cast<kernel_object*>(p.objects().handles(kind).find(handle))) {
    for (const auto& [context, function] : kernel->functions) freed.add(api::handle_kind::function, function);
  }
  freed.add(kind, handle);
}

void forget_variables(const std::map<std::string, global_address, std::less<>>& variables) {
  process& p = process::instance();
  for (const auto& [name, where] : variables) {
    const auto gone = p.memory().addresses().remove(where.address);
    if (!gone || gone->kind != memory_kind::managed) continue;
    hide_block(this_lane(), where.address);
    p.memory().managed().remove(where.address);
    p.memory().close_foreign(where.address, where.size);
  }
}

std::vector<std::uint64_t> all_of(api::handle_kind kind) {
  std::vector<std::uint64_t> out;
  process::instance().objects().handles(kind).each(
      [&](std::uint64_t handle, object&) { out.push_back(handle); });
  return out;
}

/// A library lives on without the context; what it was there does not.
void forget_library_in(std::uint64_t library, std::uint64_t context, freed_names& freed) {
  process& p = process::instance();
  auto* info = static_cast<module_info*>(p.objects().handles(api::handle_kind::library).find(library));
  if (!info) return;
  const std::lock_guard lock(info->mutex);
  if (const auto found = info->globals.find(context); found != info->globals.end()) {
    forget_variables(found->second);
    info->globals.erase(found);
  }
  info->modules.erase(context);
  for (const auto& [name, handle] : info->kernels) {
    auto* kernel = static_cast<kernel_object*>(p.objects().handles(api::handle_kind::kernel).find(handle));
    if (!kernel) continue;
    const std::lock_guard kernel_lock(kernel->mutex);
    const auto function = kernel->functions.find(context);
    if (function == kernel->functions.end()) continue;
    freed.add(api::handle_kind::function, function->second);
    kernel->functions.erase(function);
  }
}

void adopt_layout(kernel_object& kernel, const marshal::kernel_info& from) {
  kernel.parameters = from.parameters;
  kernel.parameter_bytes = from.parameter_bytes;
  kernel.layout_known.store(true, std::memory_order_release);
}

/// The table that came with the load contradicts the program's image.
CUresult malformed_table(const kernel_object& kernel) {
  const bool library =
      wire::handle{kernel.parent}.kind() == static_cast<std::uint8_t>(api::handle_kind::library);
  return malformed_reply(library ? api::opcode::cuLibraryLoadData : api::opcode::cuModuleLoadData);
}

std::uint32_t parameter_limit(const lane& own) {
  const context_state* current = own.current();
  return parameter_limit_of(process::instance().facts(), current ? current->device : 0);
}

/// Where neither reader knows the layout, the driver does. A launch packs by it: the parameters must follow
/// each other, within what a driver takes.
CUresult ask_layout(lane& own, std::uint64_t handle, std::uint32_t most, marshal::kernel_info& out) {
  request_of<api::opcode::cuFuncGetParamInfo> r(own, marshal::handle_body{handle});
  marshal::layout_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  const auto& numbers = reply.offsets_and_sizes;
  if (numbers.size() % 2) return r.malformed();
  for (std::size_t i = 0; i < numbers.size(); i += 2) {
    const std::uint64_t offset = numbers[i], size = numbers[i + 1];
    if (offset < out.parameter_bytes || offset > most || size > most - offset) return r.malformed();
    out.parameters.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(size)});
    out.parameter_bytes = static_cast<std::uint32_t>(offset + size);
  }
  return CUDA_SUCCESS;
}

}  // namespace

kernel_object* find_kernel(CUfunction function) {
  process& p = process::instance();
  const wire::handle h{value_of(function)};
  const bool is_kernel = h.kind() == static_cast<std::uint8_t>(api::handle_kind::kernel);
  const api::handle_kind kind = is_kernel ? api::handle_kind::kernel : api::handle_kind::function;
  return static_cast<kernel_object*>(p.objects().handles(kind).find(h.value));
}

CUresult kernel_by_name(lane& own, module_info& owner, std::uint64_t owner_handle, std::string_view name,
                        std::uint64_t& handle) {
  if (owner.failure != CUDA_SUCCESS) return owner.failure;
  const std::lock_guard lock(owner.mutex);
  if (const auto known = owner.kernels.find(name); known != owner.kernels.end()) {
    handle = known->second;
    return CUDA_SUCCESS;
  }
  // An image that our reader could not read has an empty table: then the driver says.
  const marshal::kernel_source source = owner.contents->source;
  if (source != marshal::kernel_source::none && !owner.contents->find_kernel(name))
    return CUDA_ERROR_NOT_FOUND;
  // The first kernel of a library makes a driver compile its PTX, and that may fail. The cpu device would say
  // so, too, but costs a wait more: there the launch says it.
  const bool compiles = owner.is_library && source == marshal::kernel_source::ptx && owner.kernels.empty() &&
                        process::instance().facts().device_kind == "vendor";
  const bool ask = source == marshal::kernel_source::none || compiles;
  const auto kind = owner.is_library ? api::handle_kind::kernel : api::handle_kind::function;
  using derives = opcode_for<marshal::derive_body>;
  const derives code =
      owner.is_library ? derives(api::opcode::cuLibraryGetKernel) : derives(api::opcode::cuModuleGetFunction);
  std::uint64_t made = 0;
  if (const CUresult result =
          reserve_and_derive(own, kind, make_kernel(name, owner_handle, owner.context, owner), code,
                             owner_handle, name, ask, made);
      result != CUDA_SUCCESS) {
    return result;
  }
  owner.kernels.emplace(name, made);
  handle = made;
  return CUDA_SUCCESS;
}

CUresult module_of_library(lane& own, CUlibrary library, CUmodule& module) {
  auto* info = find_object<module_info>(library);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  if (info->failure != CUDA_SUCCESS) return info->failure;
  const std::lock_guard lock(info->mutex);
  const std::uint64_t context = own.context_handle();
  std::uint64_t& known = info->modules[context];
  if (!known) {
    auto made = std::make_unique<module_info>();
    made->library = value_of(library);
    made->context = context;
    made->contents = info->contents;
    made->local = info->local;
    if (const CUresult code =
            reserve_and_derive(own, api::handle_kind::module, std::move(made),
                               api::opcode::cuLibraryGetModule, value_of(library), {}, false, known);
        code != CUDA_SUCCESS) {
      return code;
    }
  }
  module = reinterpret_cast<CUmodule>(known);
  return CUDA_SUCCESS;
}

CUresult function_of_kernel(lane& own, CUkernel kernel, CUfunction& function) {
  auto* from = find_object<kernel_object>(kernel);
  if (!from) return CUDA_ERROR_INVALID_HANDLE;
  const std::lock_guard lock(from->mutex);
  const std::uint64_t context = own.context_handle();
  std::uint64_t& known = from->functions[context];
  if (!known) {
    auto made = make_kernel(from->name, from->parent, context, *from);
    made->kernel = value_of(kernel);
    if (const CUresult code =
            reserve_and_derive(own, api::handle_kind::function, std::move(made),
                               api::opcode::cuKernelGetFunction, value_of(kernel), {}, false, known);
        code != CUDA_SUCCESS) {
      return code;
    }
  }
  function = reinterpret_cast<CUfunction>(known);
  return CUDA_SUCCESS;
}

CUresult variable_by_name(lane& own, const named_variable& asked, CUdeviceptr* address, std::size_t* size) {
  module_info& owner = asked.owner;
  const char* const name = asked.name;
  if (!name || (!address && !size)) return CUDA_ERROR_INVALID_VALUE;
  if (owner.failure != CUDA_SUCCESS) return owner.failure;
  const std::lock_guard lock(owner.mutex);
  const std::uint64_t context = asked.managed ? 0 : owner.is_library ? own.context_handle() : owner.context;
  auto& known = owner.globals[context];
  auto found = known.find(std::string_view(name));
  if (found == known.end()) {
    const bool ask = owner.contents->source == marshal::kernel_source::none;
    if (!ask && !owner.contents->find_variable(name)) return CUDA_ERROR_NOT_FOUND;
    typed_request r(asked.code, own, marshal::lookup_body{asked.owner_handle, name});
    r.in_context(context);
    marshal::lookup_reply reply;
    if (const CUresult result = r.call(reply); result != CUDA_SUCCESS) return result;
    process& p = process::instance();
    memory_block block;
    block.base = reply.address;
    block.size = reply.size;
    block.kind = memory_kind::global;
    block.context = context;
    const context_state* state = p.objects().find_context(context);
    block.device = state ? state->device : 0;
    const marshal::variable_info* facts = owner.contents->find_variable(name);
    const bool managed = asked.managed || (facts && facts->space == marshal::variable_space::managed);
    if (managed) block.kind = memory_kind::managed, block.variable = true;
    if (const CUresult result = p.memory().insert_foreign(block); result != CUDA_SUCCESS) return result;
    if (managed) {
      if (const CUresult result = open_managed(own, block.base, block.size); result != CUDA_SUCCESS)
        return result;
    }
    found = known.emplace(name, global_address{reply.address, reply.size}).first;
  }
  if (address) *address = found->second.address;
  if (size) *size = found->second.size;
  return CUDA_SUCCESS;
}

CUresult know_layout(lane& own, kernel_object& kernel, std::uint64_t handle) {
  if (kernel.layout_known.load(std::memory_order_acquire)) return CUDA_SUCCESS;
  const std::lock_guard lock(kernel.mutex);
  if (kernel.layout_known.load(std::memory_order_relaxed)) return CUDA_SUCCESS;
  const bool told = kernel.facts && kernel.facts->layout_known;
  const marshal::kernel_info* const here = kernel.local ? kernel.local->find_kernel(kernel.name) : nullptr;
  if (here && here->layout_known) {
    if (told && !same_layout(*kernel.facts, *here)) return malformed_table(kernel);
    return adopt_layout(kernel, *here), CUDA_SUCCESS;
  }
  const std::uint32_t most = parameter_limit(own);
  if (told) {
    if (kernel.facts->parameter_bytes > most) return malformed_table(kernel);
    return adopt_layout(kernel, *kernel.facts), CUDA_SUCCESS;
  }
  marshal::kernel_info asked;
  if (const CUresult code = ask_layout(own, handle, most, asked); code != CUDA_SUCCESS) return code;
  return adopt_layout(kernel, asked), CUDA_SUCCESS;
}

void forget_code(api::handle_kind kind, std::uint64_t handle, freed_names& freed) {
  process& p = process::instance();
  auto* info = static_cast<module_info*>(p.objects().handles(kind).find(handle));
  if (!info) return;
  std::vector<std::uint64_t> modules;
  {
    const std::lock_guard lock(info->mutex);
    const auto kernels = info->is_library ? api::handle_kind::kernel : api::handle_kind::function;
    for (const auto& [name, kernel] : info->kernels) end_kernel(kernels, kernel, freed);
    for (const auto& [context, variables] : info->globals) forget_variables(variables);
    for (const auto& [context, module] : info->modules) modules.push_back(module);
  }
  for (const std::uint64_t module : modules) forget_code(api::handle_kind::module, module, freed);
  freed.add(kind, handle);
}

void forget_code_of_context(std::uint64_t context, freed_names& freed) {
  process& p = process::instance();
  for (const std::uint64_t module : all_of(api::handle_kind::module)) {
    const object* info = p.objects().handles(api::handle_kind::module).find(module);
    if (info && info->context == context) forget_code(api::handle_kind::module, module, freed);
  }
  for (const std::uint64_t library : all_of(api::handle_kind::library))
    forget_library_in(library, context, freed);
}

CUresult for_each_function(CUmodule module, void* opaque, void (*each)(void* opaque, CUfunction function)) {
  lane& own = this_lane();
  if (const CUresult code = gate<api::opcode::cuModuleEnumerateFunctions>(own); code != CUDA_SUCCESS)
    return code;
  auto* info = find_object<module_info>(module);
  if (!info) return CUDA_ERROR_INVALID_HANDLE;
  std::vector<CUfunction> functions;
  for (const marshal::kernel_info& kernel : info->contents->kernels) {
    std::uint64_t handle = 0;
    const CUresult code = kernel_by_name(own, *info, value_of(module), kernel.name, handle);
    if (code != CUDA_SUCCESS) return code;
    functions.push_back(reinterpret_cast<CUfunction>(handle));
  }
  for (CUfunction function : functions) each(opaque, function);
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
