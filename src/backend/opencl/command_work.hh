// What a profile shows of a command: the kernel, copy or fill that it is. Commands that only keep an order,
// map or migrate are none. No state; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "api/cuda/work_record.hh"
#include "api/opencl/table.hh"
#include "backend/opencl/places.hh"
#include "backend/opencl/questions.hh"

namespace outboard::backend::opencl {

inline api::work_record copy_of(api::memory_side from, api::memory_side to, std::uint64_t bytes,
                                std::uint64_t ticket) {
  return {.kind = api::work_kind::copy, .from = from, .to = to, .bytes = bytes, .request = ticket};
}

inline api::work_record fill_of(api::memory_side to, std::uint64_t bytes, std::uint64_t ticket) {
  return {.kind = api::work_kind::fill, .to = to, .bytes = bytes, .request = ticket};
}

template <api::opencl::opcode Op>
constexpr bool leaves_work = [] {
  using enum api::opencl::opcode;
  for (const api::opencl::opcode one : {clEnqueueNDRangeKernel, clEnqueueFillBuffer, clEnqueueFillImage,
                                        clEnqueueCopyBuffer, clEnqueueCopyBufferRect, clEnqueueCopyImage,
                                        clEnqueueCopyImageToBuffer, clEnqueueCopyBufferToImage}) {
    if (one == Op) return true;
  }
  return false;
}();

/// Groups of work items, and the items of one; where the platform chooses how many make a group, each is one.
inline void put_shape(api::work_record& w, cl_uint dimensions, const std::size_t* items,
                      const std::size_t* group) {
  w.grid = w.block = {1, 1, 1};
  for (cl_uint i = 0; i < dimensions && i < w.grid.size() && items; ++i) {
    const std::size_t in_group = group && group[i] ? group[i] : 1;
    w.block[i] = static_cast<std::uint32_t>(in_group);
    w.grid[i] = static_cast<std::uint32_t>((items[i] + in_group - 1) / in_group);
  }
}

/// Of a command that the device has taken (lines that leaves_work names).
template <api::opencl::opcode Op, class Execution>
api::work_record work_of(const api::opencl::function_table& table, const Execution& e, std::uint64_t ticket) {
  using enum api::opencl::opcode;
  using enum api::memory_side;
  const auto in_image = [&](cl_mem image, const std::size_t* origin, const std::size_t* region) {
    std::size_t bytes = 0;
    (void)check_region(table, image, origin, region, bytes);
    return bytes;
  };
  if constexpr (Op == clEnqueueNDRangeKernel) {
    api::work_record w{.kind = api::work_kind::kernel, .request = ticket};
    put_shape(w, e.template argument<2>(), e.template argument<4>(), e.template argument<5>());
    return w;
  } else if constexpr (Op == clEnqueueFillBuffer) {
    return fill_of(device, e.template argument<5>(), ticket);
  } else if constexpr (Op == clEnqueueFillImage) {
    const std::size_t bytes =
        in_image(e.template argument<1>(), e.template argument<3>(), e.template argument<4>());
    return fill_of(array, bytes, ticket);
  } else if constexpr (Op == clEnqueueCopyBuffer) {
    return copy_of(device, device, e.template argument<5>(), ticket);
  } else if constexpr (Op == clEnqueueCopyBufferRect) {
    const std::size_t* const region = e.template argument<5>();
    return copy_of(device, device, region[0] * region[1] * region[2], ticket);
  } else if constexpr (Op == clEnqueueCopyImage) {
    const std::size_t bytes =
        in_image(e.template argument<1>(), e.template argument<3>(), e.template argument<5>());
    return copy_of(array, array, bytes, ticket);
  } else if constexpr (Op == clEnqueueCopyImageToBuffer) {
    const std::size_t bytes =
        in_image(e.template argument<1>(), e.template argument<3>(), e.template argument<4>());
    return copy_of(array, device, bytes, ticket);
  } else {
    static_assert(Op == clEnqueueCopyBufferToImage);
    const std::size_t bytes =
        in_image(e.template argument<2>(), e.template argument<4>(), e.template argument<5>());
    return copy_of(device, array, bytes, ticket);
  }
}

inline std::string name_of(const api::opencl::function_table& table, cl_kernel kernel) {
  return text_of([&](std::size_t size, void* to, std::size_t* wanted) {
    return table.clGetKernelInfo(kernel, CL_KERNEL_FUNCTION_NAME, size, to, wanted);
  });
}

}  // namespace outboard::backend::opencl
