// The front-end's end of an extension function that is a CALL or POST line: checks that its objects are alive
// and of one back-end; the device judges everything else. Any thread.
#pragma once

#include "frontend/opencl/home.hh"
#include "frontend/opencl/message.hh"
#include "frontend/opencl/objects.hh"

namespace outboard::frontend::opencl {

template <opcode Op, class F>
struct plain_end;
template <opcode Op, class... A>
struct plain_end<Op, cl_int(A...)> {
  static cl_int run(A... arguments) {
    cl_int code = CL_SUCCESS;
    ((code = code == CL_SUCCESS ? check(arguments) : code), ...);
    return code == CL_SUCCESS ? remote<Op>(0, arguments...) : code;
  }

 private:
  template <class T>
  static cl_int check(T argument) {
    if constexpr (api::handle_type<T>) {
      const bool usable = alive(argument) && cell_of(argument)->home == home_of_call();
      return usable ? CL_SUCCESS : api::opencl::invalid(api::handle_trait<T>::kind);
    } else {
      return CL_SUCCESS;
    }
  }
};

}  // namespace outboard::frontend::opencl
