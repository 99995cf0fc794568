#include "frontend/cuda/tables/board_layout.hh"

#include <cstdlib>
#include <cstring>

#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {
namespace {

std::uint8_t* copy_of(const std::vector<std::uint8_t>& bytes) {
  auto* copy = static_cast<std::uint8_t*>(std::malloc(bytes.size()));
  if (copy) std::memcpy(copy, bytes.data(), bytes.size());
  return copy;
}

}  // namespace

CUresult board_layout(std::uint8_t** clusters, std::uint8_t** numbers) {
  lane& own = this_lane();
  if (const CUresult code = process::instance().gate(own); code != CUDA_SUCCESS) return code;
  request_of<marshal::service::board_layout> r(own);
  marshal::board_layout_reply layout;
  if (const CUresult code = r.call(layout); code != CUDA_SUCCESS) return code;
  // Who asks reads a byte for each pair.
  const int ordinal = own.current()->device;
  const auto pairs = static_cast<std::size_t>(process::instance()
                                                  .facts()
                                                  .devices[static_cast<std::size_t>(ordinal)]
                                                  .attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]
                                                  .value /
                                              2);
  if (pairs == 0 || layout.clusters.size() < pairs || layout.numbers.size() < pairs)
    return CUDA_ERROR_NOT_SUPPORTED;
  std::uint8_t *first = copy_of(layout.clusters), *second = copy_of(layout.numbers);
  if (!first || !second) {
    std::free(first);
    std::free(second);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *clusters = first;
  *numbers = second;
  return CUDA_SUCCESS;
}

}  // namespace outboard::frontend::cuda
