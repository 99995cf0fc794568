#include "backend/cuda/memory/virtual_ranges.hh"

#include "api/cuda/functions.hh"
#include "backend/cuda/driver_call.hh"

namespace outboard::backend {
namespace {

template <class Body>
marshal::record_body record_of(api::opcode what, std::uint64_t ticket, const Body& body) {
  std::vector<std::byte> payload;
  wire::writer w(payload);
  marshal::put_body(w, body);
  marshal::record_body out;
  out.ticket = ticket;
  out.opcode = static_cast<std::uint32_t>(what);
  const auto* first = reinterpret_cast<const std::uint8_t*>(payload.data());
  out.payload.assign(first, first + payload.size());
  return out;
}

}  // namespace

CUresult virtual_ranges::reserve(const marshal::range_body& wanted, std::uint64_t ticket,
                                 std::uint64_t& address) {
  CUdeviceptr got = 0;
  const CUresult code =
      call_driver(driver_.cuMemAddressReserve, &got, wanted.size, wanted.alignment, wanted.address, 0);
  if (code != CUDA_SUCCESS) return code;
  if (wanted.address != 0 && got != wanted.address) {
    call_driver(driver_.cuMemAddressFree, got, wanted.size);
    return CUDA_ERROR_MAP_FAILED;
  }
  ranges_[got] = {wanted.size, ticket};
  return address = got, CUDA_SUCCESS;
}

CUresult virtual_ranges::free(std::uint64_t address, std::uint64_t size) {
  // Only what reserve() gave: the window is the session's own reservation.
  const auto found = ranges_.find(address);
  if (found == ranges_.end() || found->second.size != size) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = call_driver(driver_.cuMemAddressFree, address, size);
  if (code == CUDA_SUCCESS) ranges_.erase(found);
  return code;
}

void virtual_ranges::created(std::uint64_t handle, std::uint64_t size, std::int32_t device) {
  memory_[handle] = {size, device};
  bytes_ += size;
  held_.add(device, size);
}

void virtual_ranges::released(std::uint64_t handle) {
  const auto found = memory_.find(handle);
  if (found == memory_.end()) return;
  found->second.released = true;
  forget_if_gone(found);
}

void virtual_ranges::forget_if_gone(std::map<std::uint64_t, physical>::iterator memory) {
  if (!memory->second.released || memory->second.mappings != 0) return;
  bytes_ -= memory->second.size;
  held_.take(memory->second.device, memory->second.size);
  memory_.erase(memory);
}

CUresult virtual_ranges::map(const marshal::mapping_body& wanted, CUmemGenericAllocationHandle memory,
                             std::uint64_t ticket) {
  const CUresult code = call_driver(driver_.cuMemMap, wanted.address, wanted.size, wanted.offset, memory, 0);
  if (code != CUDA_SUCCESS) return code;
  placed_[wanted.address] = {wanted, ticket, {}};
  if (const auto found = memory_.find(wanted.handle); found != memory_.end()) ++found->second.mappings;
  return code;
}

CUresult virtual_ranges::unmap(std::uint64_t address, std::uint64_t size) {
  const CUresult code = call_driver(driver_.cuMemUnmap, address, size);
  if (code != CUDA_SUCCESS) return code;
  auto at = placed_.lower_bound(address);
  while (at != placed_.end() && at->first - address < size) {
    const auto memory = memory_.find(at->second.made.handle);
    at = placed_.erase(at);
    if (memory == memory_.end()) continue;
    memory->second.mappings -= memory->second.mappings > 0;
    forget_if_gone(memory);
  }
  return code;
}

CUresult virtual_ranges::set_access(const marshal::access_body& wanted,
                                    const std::vector<CUmemAccessDesc>& access) {
  const CUresult code =
      call_driver(driver_.cuMemSetAccess, wanted.address, wanted.size, access.data(), access.size());
  if (code != CUDA_SUCCESS) return code;
  for (auto at = placed_.lower_bound(wanted.address);
       at != placed_.end() && at->first - wanted.address < wanted.size; ++at) {
    for (const CUmemAccessDesc& a : access) {
      at->second.access[{static_cast<std::int32_t>(a.location.type), a.location.id}] =
          static_cast<std::int32_t>(a.flags);
    }
  }
  return code;
}

std::vector<marshal::record_body> virtual_ranges::records() const {
  std::vector<marshal::record_body> all;
  for (const auto& [address, r] : ranges_) {
    all.push_back(
        record_of(api::opcode::cuMemAddressReserve, r.ticket, marshal::range_body{address, r.size, 0}));
  }
  for (const auto& [address, p] : placed_) {
    all.push_back(record_of(api::opcode::cuMemMap, p.ticket, p.made));
    marshal::access_body rights{address, p.made.size, {}};
    for (const auto& [where, flags] : p.access) {
      rights.access.insert(rights.access.end(), {where.first, where.second, flags});
    }
    // The same ticket: sorting keeps it behind the mapping.
    if (!rights.access.empty()) all.push_back(record_of(api::opcode::cuMemSetAccess, p.ticket, rights));
  }
  return all;
}

}  // namespace outboard::backend
