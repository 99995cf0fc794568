#include "frontend/cuda/host_pages.hh"

#include <sys/mman.h>

#include "base/sealed_file.hh"
#include "frontend/memory/window.hh"

namespace outboard::frontend::cuda {
namespace {

void* pointer(std::uint64_t address) { return reinterpret_cast<void*>(address); }

int protection_of(unsigned long long flags) {
  if (flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return PROT_READ | PROT_WRITE;
  return flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ : PROT_NONE;
}

}  // namespace

bool shares_host_memory() {
  const session* server = process::instance().server();
  return server && server->passes_descriptors();
}

CUresult take_pages(api::opcode code, unique_fd&& file, unique_fd& pages) {
  if (file && !size_of_sealed_file(file.get())) return malformed_reply(code);
  return pages = std::move(file), CUDA_SUCCESS;
}

bool map_pages(const placement& made, int pages) {
  process& p = process::instance();
  p.memory().use_host_memory();
  p.memory().map_host_memory();
  if (size_of_sealed_file(pages).value_or(0) < made.size) return false;
  return map_shared(made.base, made.size, pages, 0) &&
         ::mprotect(pointer(made.base), made.size, PROT_NONE) == 0;
}

void unmap_pages(const placement& gone) {
  constexpr int reserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  ::mmap(pointer(gone.base), gone.size, PROT_NONE, reserved, -1, 0);
}

bool of_host(CUmemLocationType type) {
  return type == CU_MEM_LOCATION_TYPE_HOST || type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
         type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

std::pair<std::int32_t, std::int32_t> location_of(const CUmemLocation& where) {
  if (of_host(where.type)) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {static_cast<std::int32_t>(where.type), where.id};
}

CUresult open_to(const placement& memory, const CUmemAccessDesc& desc) {
  process::instance().memory().virtual_memory().note_access(memory.base, location_of(desc.location),
                                                            desc.flags);
  if (!of_host(desc.location.type)) return CUDA_SUCCESS;
  const bool set = ::mprotect(pointer(memory.base), memory.size, protection_of(desc.flags)) == 0;
  return set ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

}  // namespace outboard::frontend::cuda
