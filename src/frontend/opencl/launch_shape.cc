#include "frontend/opencl/launch_shape.hh"

#include <algorithm>

#include "frontend/opencl/build/build.hh"

namespace outboard::frontend::opencl {
const marshal::opencl::work_group_facts* facts_for(const kernel_info& kernel, cl_device_id device) {
  const std::size_t at = position_of(*kernel.facts, device);
  return at < kernel.about->devices.size() ? &kernel.about->devices[at] : nullptr;
}

shape_check check_shape(const kernel_info& kernel, cl_device_id device, cl_uint dimensions,
                        const std::size_t* offset, const std::size_t* global, const std::size_t* local) {
  const auto& about = *find<device_info>(device);
  if (dimensions < 1 || dimensions > about.number<cl_uint>(CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS))
    return {CL_INVALID_WORK_DIMENSION};
  if (dimensions > 3) return {CL_SUCCESS, false};
  if (!global || std::count(global, global + dimensions, std::size_t{0}))
    return {CL_SUCCESS, false};  // an error before version 2.1, nothing to do since
  for (cl_uint i = 0; offset && i < dimensions; ++i) {
    if (offset[i] + global[i] < offset[i]) return {CL_INVALID_GLOBAL_OFFSET};
  }
  const auto* const facts = facts_for(kernel, device);
  if (!facts) return {CL_INVALID_PROGRAM_EXECUTABLE};
  const bool fixed = facts->compiled.size() == 3 && facts->compiled[0] != 0;
  if (!local) return {CL_SUCCESS, !fixed};
  const auto* const limits = marshal::opencl::find(about.facts.info, CL_DEVICE_MAX_WORK_ITEM_SIZES);
  for (cl_uint i = 0; fixed && i < dimensions; ++i) {
    if (local[i] != facts->compiled[i]) return {CL_INVALID_WORK_GROUP_SIZE};
  }
  std::size_t items = 1;
  bool divides = true;
  for (cl_uint i = 0; i < dimensions; ++i) {
    if (local[i] == 0) return {CL_INVALID_WORK_GROUP_SIZE};
    std::size_t most = ~std::size_t{0};
    if (limits && limits->value.size() >= (i + 1) * sizeof most)
      std::memcpy(&most, limits->value.data() + i * sizeof most, sizeof most);
    if (local[i] > most) return {CL_INVALID_WORK_ITEM_SIZE};
    if (__builtin_mul_overflow(items, local[i], &items)) return {CL_INVALID_WORK_GROUP_SIZE};
    divides = divides && global[i] % local[i] == 0;
  }
  if (items > about.number<std::size_t>(CL_DEVICE_MAX_WORK_GROUP_SIZE)) return {CL_INVALID_WORK_GROUP_SIZE};
  // The kernel's own limit may follow from what it was launched with; groups that differ are the compiler's
  // choice.
  return {CL_SUCCESS, divides && items <= facts->size};
}

}  // namespace outboard::frontend::opencl
