// Code in modules and libraries, as both chapters and the launches need it: loading an image, the handles of
// its kernels, the addresses of its variables, and what ends with a module or a context. Any thread.
#pragma once

#include <cstddef>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "frontend/cuda/code/jit_options.hh"
#include "frontend/cuda/objects.hh"
#include "frontend/cuda/requests.hh"
#include "frontend/freed_names.hh"
#include "marshal/cuda/image.hh"

namespace outboard::frontend::cuda {

/// The file's bytes and a NUL (the end that PTX text needs), or the driver's code for a file that cannot be
/// read.
CUresult read_file(const char* path, std::vector<std::byte>& into);

/// Sends bytes ahead of a request that names them. Until that request `turn` is kept: servers that have one
/// place for all threads' bytes take one load after the other.
CUresult upload(lane& own, std::span<const std::byte> bytes, const std::unique_lock<std::mutex>& turn);
std::unique_lock<std::mutex> take_upload_turn();

/// What an image is chosen for: the current context's device.
marshal::image_target target_for(const lane& own, bool library);

struct load_order {
  opcode_for<marshal::load_body, marshal::load_reply> code;
  bool library = false;
  const jit_options* jit = nullptr;
};

/// Chooses what the device can use, sends it, loads it. The handle of a new module or library.
CUresult load_code(lane& own, const load_order& order, const result<marshal::image_view>& image,
                   std::uint64_t& handle);

/// The kernel object behind a CUfunction that may be a CUkernel; nullptr: neither, or dead.
kernel_object* find_kernel(CUfunction function);

/// The handle of the owner's kernel with this name: always the same one.
CUresult kernel_by_name(lane& own, module_info& owner, std::uint64_t owner_handle, std::string_view name,
                        std::uint64_t& handle);

/// The module or CUfunction that a library or CUkernel is in the current context: always the same one.
CUresult module_of_library(lane& own, CUlibrary library, CUmodule& module);
CUresult function_of_kernel(lane& own, CUkernel kernel, CUfunction& function);

/// A variable of a module or library.
struct named_variable {
  opcode_for<marshal::lookup_body, marshal::lookup_reply> code;  ///< under which it is asked for
  module_info& owner;
  std::uint64_t owner_handle = 0;
  const char* name = nullptr;
  bool managed = false;  ///< that is known: it is the same in all contexts, and there before any
};

/// Its address and size, in the current context.
CUresult variable_by_name(lane& own, const named_variable& asked, CUdeviceptr* address, std::size_t* size);

/// After this the kernel's parameters may be read without a lock. They are what the program's own image says;
/// a server that says otherwise has ended the session. For an image that cannot be read here the server is
/// believed, within the limits of a driver.
CUresult know_layout(lane& own, kernel_object& kernel, std::uint64_t handle);

/// Forgets a module or library with the addresses that came of it; its handles are `freed`.
void forget_code(api::handle_kind kind, std::uint64_t handle, freed_names& freed);

/// The context is gone (destroyed or reset): its modules, functions and variables with it.
void forget_code_of_context(std::uint64_t context, freed_names& freed);

/// For the export tables: calls `each` once per function of the module.
CUresult for_each_function(CUmodule module, void* opaque, void (*each)(void* opaque, CUfunction function));

}  // namespace outboard::frontend::cuda
