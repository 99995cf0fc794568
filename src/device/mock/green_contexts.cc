// Resources of the mock for green contexts: as many multiprocessors as its attribute says, split into groups
// of eight.
#include <algorithm>
#include <cstring>

#include "device/mock/state.hh"

namespace outboard::device::mock {
namespace {

constexpr unsigned unit = 8;
constexpr unsigned char mark =
    0x5a;  // the part of a resource that only the driver reads must come back unchanged

CUdevResource resource_of(unsigned multiprocessors) {
  CUdevResource r{};
  r.type = multiprocessors ? CU_DEV_RESOURCE_TYPE_SM : CU_DEV_RESOURCE_TYPE_INVALID;
  std::memset(r._internal_padding, mark, sizeof r._internal_padding);
  r.sm = {multiprocessors, unit, unit};
  return r;
}

unsigned all_multiprocessors() {
  std::lock_guard lock(here().mutex);
  return static_cast<unsigned>(here().attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]);
}

CUresult give(CUdevResource* out, CUdevResourceType type, unsigned multiprocessors) {
  if (type != CU_DEV_RESOURCE_TYPE_SM) return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  return *out = resource_of(multiprocessors), CUDA_SUCCESS;
}

CUresult of_device(CUdevice, CUdevResource* out, CUdevResourceType type) {
  return give(out, type, all_multiprocessors());
}
CUresult of_context(CUcontext, CUdevResource* out, CUdevResourceType type) {
  return give(out, type, all_multiprocessors());
}
CUresult of_green_context(CUgreenCtx, CUdevResource* out, CUdevResourceType type) {
  return give(out, type, unit);
}

CUresult split(CUdevResource* groups, unsigned* count, const CUdevResource* input, CUdevResource* rest,
               unsigned, unsigned minimum) {
  if (input->type != CU_DEV_RESOURCE_TYPE_SM || input->_internal_padding[0] != mark)
    return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  const unsigned size = (std::max(minimum, 1u) + unit - 1) / unit * unit;
  const unsigned possible = input->sm.smCount / size;
  if (possible == 0) return CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION;
  *count = groups ? std::min(*count, possible) : possible;
  for (unsigned i = 0; groups && i < *count; ++i) groups[i] = resource_of(size);
  if (rest) *rest = resource_of(input->sm.smCount - *count * size);
  return CUDA_SUCCESS;
}

}  // namespace

void set_green_context_behaviours(api::driver_table& b) {
  b.cuDeviceGetDevResource = of_device;
  b.cuCtxGetDevResource = of_context;
  b.cuGreenCtxGetDevResource = of_green_context;
  b.cuDevSmResourceSplitByCount = split;
}

}  // namespace outboard::device::mock
