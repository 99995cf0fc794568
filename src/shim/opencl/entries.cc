// The tables of OpenCL expanded into the dispatch table through which a loader calls, and into the few
// symbols that it looks up. A function that is LATER refuses: loaders call through the table without a look
// at it, so an entry cannot be absent where a program may reach it.
#include "shim/opencl/entries.hh"

#include <tuple>

#include "frontend/opencl/ends.hh"
#include "frontend/opencl/objects.hh"
#include "frontend/opencl/plain_end.hh"
#include "shim/opencl/traced.hh"

namespace outboard::shim::opencl {

using api::opencl::opcode;

namespace {

namespace ends = frontend::opencl::ends;

/// The first object among a call's arguments; those that come in lists are their ends' to look at.
frontend::opencl::cell* first_object() { return nullptr; }
template <class First, class... Others>
frontend::opencl::cell* first_object(First first, Others... others) {
  if constexpr (api::handle_type<First>) {
    return frontend::opencl::alive(first) ? frontend::opencl::cell_of(first) : nullptr;
  } else {
    return first_object(others...);
  }
}

template <opcode Op, auto End, class F>
struct stub;
template <opcode Op, auto End, class R, class... A>
struct stub<Op, End, R(A...)> {
  static R CL_API_CALL run(A... arguments) {
    const frontend::opencl::at_home here(first_object(arguments...));
    return traced<Op, R>(End, arguments...);
  }
};

template <class F>
struct missing;
template <class R, class... A>
struct missing<R(A...)> {
  static R CL_API_CALL run(A... arguments) {
    if constexpr (std::is_same_v<R, cl_int>) {
      return CL_INVALID_OPERATION;
    } else if constexpr (!std::is_void_v<R>) {
      // Whatever gives an object tells its error through the last parameter.
      [[maybe_unused]] auto last = std::get<sizeof...(A) - 1>(std::tuple<A...>(arguments...));
      if constexpr (std::is_same_v<decltype(last), cl_int*>) {
        if (last) *last = CL_INVALID_OPERATION;
      }
      return nullptr;
    }
  }
};

}  // namespace

const cl_icd_dispatch* dispatch_table() {
  static const cl_icd_dispatch table = [] {
    cl_icd_dispatch t{};
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_SLOT_##how(symbol)
#define OUTBOARD_SLOT_call(symbol) t.symbol = &stub<opcode::symbol, &ends::symbol, decltype(::symbol)>::run;
#define OUTBOARD_SLOT_post OUTBOARD_SLOT_call
#define OUTBOARD_SLOT_custom OUTBOARD_SLOT_call
#define OUTBOARD_SLOT_local OUTBOARD_SLOT_call
#define OUTBOARD_SLOT_later(symbol) t.symbol = &missing<decltype(::symbol)>::run;
#define OUTBOARD_CORE_LINES
#include "api/opencl/expand.def"
#undef OUTBOARD_CORE_LINES
#undef OUTBOARD_SLOT_call
#undef OUTBOARD_SLOT_post
#undef OUTBOARD_SLOT_custom
#undef OUTBOARD_SLOT_local
#undef OUTBOARD_SLOT_later
#undef OUTBOARD_LINE
#undef CHAPTER
    return t;
  }();
  return &table;
}

void* extension_function(std::string_view name) {
#define PROMOTED(extension, symbol, core) \
  if (name == #symbol) return reinterpret_cast<void*>(dispatch_table()->core);
#define EXTENSION(extension, how, symbol, ...) \
  if (name == #symbol)                         \
    return reinterpret_cast<void*>(            \
        &stub<opcode::symbol, OUTBOARD_END_##how(symbol), decltype(::symbol)>::run);
#define OUTBOARD_END_CALL(symbol) (&frontend::opencl::plain_end<opcode::symbol, decltype(::symbol)>::run)
#define OUTBOARD_END_POST OUTBOARD_END_CALL
#define OUTBOARD_END_CUSTOM(symbol) (&ends::symbol)
#define OUTBOARD_END_LOCAL OUTBOARD_END_CUSTOM
#include "api/opencl/extensions.def"
#undef OUTBOARD_END_CALL
#undef OUTBOARD_END_POST
#undef OUTBOARD_END_CUSTOM
#undef OUTBOARD_END_LOCAL
#undef EXTENSION
#undef PROMOTED
  return nullptr;
}

}  // namespace outboard::shim::opencl

#define OUTBOARD_EXPORTED extern "C" __attribute__((visibility("default")))

OUTBOARD_EXPORTED cl_int clIcdGetPlatformIDsKHR(cl_uint num_entries, cl_platform_id* platforms,
                                                cl_uint* num_platforms) {
  using outboard::shim::opencl::opcode;
  return outboard::shim::opencl::traced<opcode::clGetPlatformIDs, cl_int>(
      outboard::frontend::opencl::ends::icd_platforms, num_entries, platforms, num_platforms);
}

// Loaders ask for these two by dlsym.
OUTBOARD_EXPORTED void* clGetExtensionFunctionAddress(const char* name) {
  if (name && std::string_view(name) == "clIcdGetPlatformIDsKHR")
    return reinterpret_cast<void*>(&clIcdGetPlatformIDsKHR);
  return outboard::frontend::opencl::ends::clGetExtensionFunctionAddress(name);
}

OUTBOARD_EXPORTED cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info name, std::size_t size,
                                           void* value, std::size_t* wanted) {
  return outboard::frontend::opencl::ends::clGetPlatformInfo(platform, name, size, value, wanted);
}
