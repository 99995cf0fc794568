#include "backend/cuda/memory/virtual_ranges.hh"

#include <algorithm>

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
  // And nothing may lie there: of the host's memory the driver knows nothing.
  const auto found = ranges_.find(address);
  if (found == ranges_.end() || found->second.size != size || maps_in(address, size))
    return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = call_driver(driver_.cuMemAddressFree, address, size);
  if (code == CUDA_SUCCESS) ranges_.erase(found);
  return code;
}

void virtual_ranges::created(std::uint64_t handle, std::uint64_t size, std::int32_t device) {
  physical& made = memory_[handle];
  made.size = size;
  made.device = device;
  bytes_ += size;
  held_.add(device, size);
}

void virtual_ranges::created_on_host(std::uint64_t handle, std::uint64_t size, unique_fd file,
                                     std::int32_t node) {
  physical& made = memory_[handle];
  made.size = size;
  made.file = std::move(file);
  made.node = node;
  held_.add_of_host(size);
}

int virtual_ranges::host_file(std::uint64_t handle) const {
  const auto found = memory_.find(handle);
  return found == memory_.end() || found->second.released || !found->second.file ? -1
                                                                                 : found->second.file.get();
}

void virtual_ranges::released(std::uint64_t handle) {
  const auto found = memory_.find(handle);
  if (found == memory_.end()) return;
  found->second.released = true;
  forget_if_gone(found);
}

void virtual_ranges::forget_if_gone(std::map<std::uint64_t, physical>::iterator memory) {
  if (!memory->second.released || memory->second.mappings != 0) return;
  const physical& gone = memory->second;
  if (gone.file) {
    held_.take_of_host(gone.size);
  } else {
    bytes_ -= gone.size;
    held_.take(gone.device, gone.size);
  }
  memory_.erase(memory);
}

void virtual_ranges::note_placed(const marshal::mapping_body& made, placed&& where) {
  placed_[made.address] = std::move(where);
  if (const auto found = memory_.find(made.handle); found != memory_.end()) ++found->second.mappings;
}

bool virtual_ranges::maps_in(std::uint64_t address, std::uint64_t size) const {
  {
    const std::lock_guard lock(going_mutex_);
    const auto reaches = [&](const auto& piece) {
      return piece.first < address + size && address < piece.first + piece.second;
    };
    if (std::any_of(going_.begin(), going_.end(), reaches)) return true;
  }
  const auto after = placed_.lower_bound(address);
  if (after != placed_.end() && after->first - address < size) return true;
  if (after == placed_.begin()) return false;
  const marshal::mapping_body& before = std::prev(after)->second.made;
  return address - before.address < before.size;
}

bool virtual_ranges::vacant(std::uint64_t address, std::uint64_t size) const {
  auto around = ranges_.upper_bound(address);
  if (around == ranges_.begin()) return false;
  --around;
  const std::uint64_t offset = address - around->first, room = around->second.size;
  return size <= room && offset <= room - size && !maps_in(address, size);
}

CUresult virtual_ranges::map(const marshal::mapping_body& wanted, CUmemGenericAllocationHandle memory,
                             std::uint64_t ticket) {
  if (maps_in(wanted.address, wanted.size)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult code = call_driver(driver_.cuMemMap, wanted.address, wanted.size, wanted.offset, memory, 0);
  if (code != CUDA_SUCCESS) return code;
  note_placed(wanted, {wanted, ticket, {}, {}});
  return code;
}

CUresult virtual_ranges::map_host(const marshal::mapping_body& wanted, std::uint64_t ticket) {
  const physical& memory = memory_.at(wanted.handle);
  if (wanted.offset != 0 || wanted.size == 0 || wanted.size > memory.size) return CUDA_ERROR_INVALID_VALUE;
  host_piece piece;
  const CUresult code = piece.place(wanted.address, wanted.size, memory.file.get(), memory.node);
  if (code == CUDA_SUCCESS) note_placed(wanted, {wanted, ticket, {}, piece});
  return code;
}

bool virtual_ranges::has_host(std::uint64_t address, std::uint64_t size) const {
  for (auto at = placed_.lower_bound(address); at != placed_.end() && at->first - address < size; ++at) {
    if (at->second.host) return true;
  }
  return false;
}

virtual_ranges::placements::iterator virtual_ranges::take_out(placements::iterator gone) {
  const auto memory = memory_.find(gone->second.made.handle);
  if (memory != memory_.end()) {
    memory->second.mappings -= memory->second.mappings > 0;
    forget_if_gone(memory);
  }
  return placed_.erase(gone);
}

CUresult virtual_ranges::unmap_each(std::uint64_t address, std::uint64_t size,
                                    std::vector<host_piece>& going) {
  CUresult first = CUDA_SUCCESS;
  for (auto at = placed_.lower_bound(address); at != placed_.end() && at->first - address < size;) {
    CUresult code = CUDA_SUCCESS;
    if (at->second.host) {
      const std::lock_guard lock(going_mutex_);
      going_[at->first] = at->second.made.size;
      going.push_back(*at->second.host);
    } else {
      code = call_driver(driver_.cuMemUnmap, at->first, at->second.made.size);
    }
    if (first == CUDA_SUCCESS) first = code;
    // What the driver keeps stays in the books.
    at = code == CUDA_SUCCESS ? take_out(at) : std::next(at);
  }
  return first;
}

void virtual_ranges::end_pieces(std::vector<host_piece>& going) {
  for (host_piece& piece : going) {
    // What the driver does not forget keeps its addresses.
    if (!piece.remove(driver_)) continue;
    const std::lock_guard lock(going_mutex_);
    going_.erase(piece.address());
  }
}

CUresult virtual_ranges::unmap(std::uint64_t address, std::uint64_t size, std::vector<host_piece>& going) {
  if (has_host(address, size)) return unmap_each(address, size, going);
  const CUresult code = call_driver(driver_.cuMemUnmap, address, size);
  if (code != CUDA_SUCCESS) return code;
  for (auto at = placed_.lower_bound(address); at != placed_.end() && at->first - address < size;)
    at = take_out(at);
  return code;
}

void virtual_ranges::context_reset(CUdevice device) {
  for (auto& [address, p] : placed_) {
    if (p.host) p.host->lock_again(driver_, device);
  }
}

void virtual_ranges::note_access(placed& where, const std::vector<CUmemAccessDesc>& access) {
  for (const CUmemAccessDesc& a : access) {
    where.access[{static_cast<std::int32_t>(a.location.type), a.location.id}] =
        static_cast<std::int32_t>(a.flags);
  }
}

CUresult virtual_ranges::open_each(const marshal::access_body& wanted,
                                   const std::vector<CUmemAccessDesc>& access) {
  const auto user = std::find_if(access.begin(), access.end(), [](const CUmemAccessDesc& a) {
    return a.flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
  });
  CUresult code = CUDA_SUCCESS;
  for (auto at = placed_.lower_bound(wanted.address);
       at != placed_.end() && at->first - wanted.address < wanted.size && code == CUDA_SUCCESS; ++at) {
    if (!at->second.host) {
      code =
          call_driver(driver_.cuMemSetAccess, at->first, at->second.made.size, access.data(), access.size());
    } else if (user != access.end()) {
      code = at->second.host->page_lock(driver_, user->location.id);
    }
    if (code == CUDA_SUCCESS) note_access(at->second, access);
  }
  return code;
}

CUresult virtual_ranges::set_access(const marshal::access_body& wanted,
                                    const std::vector<CUmemAccessDesc>& access) {
  if (has_host(wanted.address, wanted.size)) return open_each(wanted, access);
  const CUresult code =
      call_driver(driver_.cuMemSetAccess, wanted.address, wanted.size, access.data(), access.size());
  if (code != CUDA_SUCCESS) return code;
  for (auto at = placed_.lower_bound(wanted.address);
       at != placed_.end() && at->first - wanted.address < wanted.size; ++at)
    note_access(at->second, access);
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
