// What a session knows of its kernels' arguments. If an argument is an object, platforms follow its bytes as
// a pointer. So a client's bytes are set only for an argument that is bytes, and objects only for an argument
// of their kind. Compilers report the kind (-cl-kernel-arg-info); if they do not, the platform is tried with
// bytes that point nowhere. Called with the session's turn.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "api/handles.hh"
#include "api/opencl/table.hh"

namespace outboard::backend::opencl {

class kernel_arguments {
 public:
  explicit kernel_arguments(const api::opencl::function_table& table) : table_(table) {}

  /// Checks whether so many bytes of a client's may be the argument's value.
  cl_int check_value(cl_kernel kernel, cl_uint index, std::size_t size);
  /// Checks whether an object of this kind may be the value. `none` is the null pointer.
  cl_int check_object(cl_kernel kernel, cl_uint index, api::handle_kind kind);
  /// Checks whether an address of shared memory may be the value.
  cl_int check_address(cl_kernel kernel, cl_uint index);

  /// Notes the result of setting an argument. A kernel with an argument that was refused cannot be launched.
  void note(cl_kernel kernel, cl_uint index, cl_int code);
  cl_int failed(cl_kernel kernel) const;
  /// To be called before the kernel is released.
  void forget(cl_kernel kernel) { known_.erase(kernel); }

 private:
  enum class meant : std::uint8_t {
    unasked,
    untold,     ///< the platform tells nothing
    own_bytes,  ///< bytes or an object, in the kernel's own memory: a type's name may hide either
    bytes,
    bytes_perhaps,  ///< or an object: it accepts zeros, but not a size without bytes
    local,
    memory,
    sampler,
    queue,
    unknown,  ///< the platform would follow it as a pointer of unknown type
    none,     ///< the kernel has no such argument
  };
  struct argument {
    meant what = meant::unasked;
    cl_int code = CL_SUCCESS;  ///< of a post
  };
  struct kernel_facts {
    std::vector<argument> arguments;
    unsigned failures = 0;  ///< how many have an error code
  };
  kernel_facts& facts_of(cl_kernel kernel);
  meant ask(cl_kernel kernel, cl_uint index) const;
  meant& told(cl_kernel kernel, cl_uint index);
  void try_out(cl_kernel kernel, cl_uint index, meant& known) const;

  const api::opencl::function_table& table_;
  std::unordered_map<cl_kernel, kernel_facts> known_;
  meant no_such_ = meant::none;
};

}  // namespace outboard::backend::opencl
