// Code that a session has loaded, kept with its module or library and with everything that came of it: the
// image (the driver may look at it, and the session may be rebuilt elsewhere) and the ids that die with it.
// With the turn.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backend/cuda/call.hh"
#include "backend/cuda/code/jit_options.hh"
#include "backend/cuda/objects.hh"
#include "marshal/cuda/bodies.hh"
#include "marshal/cuda/image.hh"

namespace outboard::backend {

struct loaded_code {
  explicit loaded_code(marshal::module_image i) : image(std::move(i)) {}
  marshal::module_image image;
  std::uint64_t id = 0;                ///< of the module or library
  std::vector<std::string> variables;  ///< names, as far as the image tells, but for managed ones
  std::vector<std::string> managed;    ///< of those
  std::vector<std::uint64_t> derived;  ///< modules, kernels and functions made of it
};

/// The end of every request that derives an object: enters it beside its parent, or leaves a tombstone.
outcome derived(call& c, api::handle_kind parent_kind, const marshal::derive_body& body, CUresult code,
                void* native);

/// The code that a module, library, kernel or function is part of; nullptr for any other object.
loaded_code* code_of(const server_object& object);

/// Where a variable of a module or library lies, in the context that is current. Loads the code, if it was
/// not.
CUresult address_of_variable(call& c, std::uint64_t code, const std::string& name, CUdeviceptr& address,
                             std::size_t& size);

/// The address of a variable was asked for.
void note_use(call& c, const marshal::lookup_body& asked);

/// Where the managed variables of a module or library lie (of all modules of a context), if any has a mirror:
/// the mirrors must drop them before the driver takes the memory away.
std::vector<marshal::address_range> managed_variables(call& c, std::uint64_t id);
std::vector<marshal::address_range> managed_variables_of_context(call& c, std::uint64_t context);

/// Erases the module's or library's own id and every id derived from it. The native object is the caller's.
void forget_code(object_tables& objects, std::uint64_t id);

/// The context was destroyed or reset, and with it its modules and the functions made in it.
void forget_code_of_context(object_tables& objects, std::uint64_t context);

}  // namespace outboard::backend
