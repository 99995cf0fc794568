// Multicast objects of the mock: a team of devices, the memory bound to it, and the driver's checks of both.
// The mock has one device, so a team of one is complete, and nothing is copied.
#include "device/mock/state.hh"

namespace outboard::device::mock {
namespace {

constexpr std::uint64_t granularity = 2 << 20;

bool whole(std::uint64_t value) { return value % granularity == 0; }

team* find(state& s, CUmemGenericAllocationHandle handle) {
  const auto at = s.teams.find(handle);
  return at == s.teams.end() ? nullptr : &at->second;
}

CUresult create(CUmemGenericAllocationHandle* out, const CUmulticastObjectProp* prop) {
  if (prop->numDevices == 0 || prop->size == 0 || !whole(prop->size)) return CUDA_ERROR_INVALID_VALUE;
  state& s = here();
  std::lock_guard lock(s.mutex);
  *out = s.make_handle();
  s.teams[*out] = {prop->size, prop->numDevices, {}, {}};
  return CUDA_SUCCESS;
}

CUresult add_device(CUmemGenericAllocationHandle handle, CUdevice device) {
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  state& s = here();
  std::lock_guard lock(s.mutex);
  team* t = find(s, handle);
  if (!t || t->devices.size() >= t->wanted || !t->devices.insert(device).second)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

/// The manual allows binding only once every device of the team has been added.
CUresult bind(team* t, std::uint64_t offset, std::uint64_t size) {
  if (!t || size == 0 || !whole(offset) || !whole(size) || size > t->size || offset > t->size - size)
    return CUDA_ERROR_INVALID_VALUE;
  if (t->devices.size() != t->wanted) return CUDA_ERROR_INVALID_VALUE;
  for (const auto& [begin, length] : t->bound) {
    if (offset < begin + length && begin < offset + size) return CUDA_ERROR_INVALID_VALUE;
  }
  t->bound[offset] = size;
  return CUDA_SUCCESS;
}

CUresult bind_memory(CUmemGenericAllocationHandle handle, std::size_t offset,
                     CUmemGenericAllocationHandle memory, std::size_t memory_offset, std::size_t size,
                     unsigned long long) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  const auto block = s.physicals.find(memory);
  if (block == s.physicals.end() || size > block->second.size || memory_offset > block->second.size - size)
    return CUDA_ERROR_INVALID_VALUE;
  return bind(find(s, handle), offset, size);
}

CUresult bind_address(CUmemGenericAllocationHandle handle, std::size_t offset, CUdeviceptr address,
                      std::size_t size, unsigned long long) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  const auto at = s.mappings.upper_bound(address);
  if (at == s.mappings.begin()) return CUDA_ERROR_INVALID_VALUE;
  const auto& [begin, m] = *std::prev(at);
  if (address - begin >= m.size || size > m.size - (address - begin)) return CUDA_ERROR_INVALID_VALUE;
  return bind(find(s, handle), offset, size);
}

CUresult unbind(CUmemGenericAllocationHandle handle, CUdevice device, std::size_t offset, std::size_t size) {
  state& s = here();
  std::lock_guard lock(s.mutex);
  team* t = find(s, handle);
  if (!t || !t->devices.contains(device)) return CUDA_ERROR_INVALID_VALUE;
  const auto at = t->bound.find(offset);
  if (at == t->bound.end() || at->second != size) return CUDA_ERROR_INVALID_VALUE;
  t->bound.erase(at);
  return CUDA_SUCCESS;
}

CUresult get_granularity(std::size_t* out, const CUmulticastObjectProp*, CUmulticastGranularity_flags) {
  return *out = granularity, CUDA_SUCCESS;
}

}  // namespace

void set_multicast_behaviours(api::driver_table& b) {
  b.cuMulticastCreate = create;
  b.cuMulticastAddDevice = add_device;
  b.cuMulticastBindMem = bind_memory;
  b.cuMulticastBindAddr = bind_address;
  b.cuMulticastUnbind = unbind;
  b.cuMulticastGetGranularity = get_granularity;
}

}  // namespace outboard::device::mock
