// How clGetXInfo gives its answers, and how functions that return an object tell their error. Pure functions.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>
#include <vector>

#include "frontend/opencl/objects.hh"

namespace outboard::frontend::opencl {

/// The last three parameters of every clGetXInfo.
struct asked {
  std::size_t size;
  void* value;
  std::size_t* wanted;

  cl_int bytes(const void* data, std::size_t n) const {
    if (value && size < n) return CL_INVALID_VALUE;
    if (value && n) std::memcpy(value, data, n);
    if (wanted) *wanted = n;
    return CL_SUCCESS;
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> cl_int one(const T& answer)
  const { return bytes(&answer, sizeof answer); }
  template <class T>
  cl_int list(const std::vector<T>& answer) const {
    return bytes(answer.data(), answer.size() * sizeof(T));
  }
  cl_int text(const std::string& answer) const { return bytes(answer.c_str(), answer.size() + 1); }
};

template <class H>
H give(cl_int* errcode_ret, cl_int code, H made) {
  if (errcode_ret) *errcode_ret = code;
  return code == CL_SUCCESS ? made : nullptr;
}

inline std::nullptr_t fail(cl_int* errcode_ret, cl_int code) {
  if (errcode_ret) *errcode_ret = code;
  return nullptr;
}

/// A new object that `tell(id)` announces to the server; its result decides.
template <class H, class Info, class Tell>
H create(std::unique_ptr<Info> info, cl_int* errcode_ret, Tell&& tell) {
  cell* const made = make(api::handle_trait<H>::kind, std::move(info));
  if (!made) return fail(errcode_ret, CL_OUT_OF_HOST_MEMORY);
  const cl_int code = tell(made->id);
  if (code != CL_SUCCESS) discard(*made);
  return give(errcode_ret, code, reinterpret_cast<H>(made));
}

}  // namespace outboard::frontend::opencl
