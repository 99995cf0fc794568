// What a session knows of its kernels' arguments. Platforms follow the bytes of an argument that is an object
// as a pointer, so a client's bytes are set only where they are taken for bytes, and only such objects are
// set as are meant there: compilers say so (-cl-kernel-arg-info), else the platform is tried with bytes that
// point nowhere. With the session's turn.
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

  /// May so many bytes of a client's be its value?
  cl_int check_value(cl_kernel kernel, cl_uint index, std::size_t size);
  /// May an object of this kind? `none`: the null pointer.
  cl_int check_object(cl_kernel kernel, cl_uint index, api::handle_kind kind);
  /// May an address of shared memory?
  cl_int check_address(cl_kernel kernel, cl_uint index);

  /// What setting an argument gave: a kernel with one that was not taken cannot be launched.
  void note(cl_kernel kernel, cl_uint index, cl_int code);
  cl_int failed(cl_kernel kernel) const;
  /// It is about to go.
  void forget(cl_kernel kernel) { known_.erase(kernel); }

 private:
  enum class meant : std::uint8_t {
    unasked,
    untold,     ///< the platform tells nothing
    own_bytes,  ///< bytes or an object, in the kernel's own memory: a type's name may hide either
    bytes,
    bytes_perhaps,  ///< or an object: it takes zeros, and not a size alone
    local,
    memory,
    sampler,
    queue,
    unknown,  ///< the platform would follow it, and nobody knows to what
    none,     ///< the kernel has no such argument
  };
  struct argument {
    meant what = meant::unasked;
    cl_int code = CL_SUCCESS;  ///< of a post
  };
  struct kernel_facts {
    std::vector<argument> arguments;
    unsigned failures = 0;  ///< of them have a code
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
