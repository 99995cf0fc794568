#include <algorithm>

#include "frontend/cuda/code/code.hh"
#include "frontend/cuda/code/launch_attributes.hh"
#include "frontend/cuda/ends.hh"
#include "frontend/cuda/gate.hh"

namespace outboard::frontend::cuda {
namespace {

/// Libraries ask the same before every launch; a program that asks for ever new sizes gains nothing from
/// more.
constexpr std::size_t most_remembered = 256;

CUresult active_blocks(lane& own, int* blocks, CUfunction function, int block, std::size_t shared,
                       unsigned flags) {
  if (!blocks) return CUDA_ERROR_INVALID_VALUE;
  kernel_object* kernel = find_kernel(function);
  if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
  const kernel_object::occupancy_question question{own.current()->device, block, shared, flags};
  {
    const std::lock_guard lock(kernel->mutex);
    const auto known = kernel->occupancies.find(question);
    if (known != kernel->occupancies.end()) return *blocks = known->second, CUDA_SUCCESS;
  }
  request_of<api::opcode::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags> r(
      own, marshal::occupancy_body{value_of(function), shared, block, flags});
  marshal::number_reply answer;
  if (const CUresult code = r.call(answer); code != CUDA_SUCCESS) return code;
  const std::lock_guard lock(kernel->mutex);
  if (kernel->occupancies.size() < most_remembered)
    kernel->occupancies[question] = static_cast<int>(answer.value);
  *blocks = static_cast<int>(answer.value);
  return CUDA_SUCCESS;
}

int device_attribute(std::int32_t device, CUdevice_attribute id) {
  const auto& known = process::instance().facts().devices[static_cast<std::size_t>(device)].attributes;
  const auto i = static_cast<std::size_t>(id);
  return i < known.size() && known[i].result == CUDA_SUCCESS ? known[i].value : 0;
}

struct block_size {
  int grid = 0, block = 0;
};

/// The server asks its driver: without a callback there is nothing of the program's in it.
CUresult ask_block_size(lane& own, CUfunction function, std::size_t shared, int limit, unsigned flags,
                        block_size& best) {
  request_of<api::opcode::cuOccupancyMaxPotentialBlockSizeWithFlags> r(
      own, marshal::occupancy_body{value_of(function), shared, limit, flags});
  marshal::block_size_reply reply;
  if (const CUresult code = r.call(reply); code != CUDA_SUCCESS) return code;
  best = {reply.grid, reply.block};
  return CUDA_SUCCESS;
}

/// The program's function says how much shared memory a block of each size takes: every size that is a
/// multiple of the warp is tried from the largest down, and the first with the most resident threads wins (as
/// the manual describes).
CUresult search_block_size(lane& own, CUfunction function, CUoccupancyB2DSize shared_of, int limit,
                           unsigned flags, block_size& best) {
  const std::int32_t device = own.current()->device;
  const int warp = device_attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE);
  const int resident = device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
  int most = device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  if (warp <= 0) return CUDA_ERROR_NOT_SUPPORTED;
  int kernel_most = 0;
  if (const CUresult code =
          ends::cuFuncGetAttribute(&kernel_most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
      code != CUDA_SUCCESS) {
    return code;
  }
  most = std::min(most, kernel_most);
  if (limit > 0) most = std::min(most, limit);
  int threads = 0, blocks_of_best = 0;
  for (int size = (most + warp - 1) / warp * warp; size > 0 && threads < resident; size -= warp) {
    const int tried = std::min(size, most);
    int blocks = 0;
    const CUresult code = active_blocks(own, &blocks, function, tried, shared_of(tried), flags);
    if (code != CUDA_SUCCESS) return code;
    if (tried * blocks <= threads) continue;
    threads = tried * blocks;
    blocks_of_best = blocks;
    best.block = tried;
  }
  best.grid = blocks_of_best * device_attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return CUDA_SUCCESS;
}

CUresult best_block_size(int* grid, int* block, CUfunction function, CUoccupancyB2DSize shared_of,
                         std::size_t shared, int limit, unsigned flags) {
  lane& own = this_lane();
  if (!grid || !block || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  if (!find_kernel(function)) return CUDA_ERROR_INVALID_HANDLE;
  block_size best;
  const CUresult code = shared_of ? search_block_size(own, function, shared_of, limit, flags, best)
                                  : ask_block_size(own, function, shared, limit, flags, best);
  if (code == CUDA_SUCCESS) *grid = best.grid, *block = best.block;
  return code;
}

using asks_clusters = opcode_for<marshal::by_hand<marshal::cluster_query_body>, marshal::number_reply>;

CUresult ask_clusters(asks_clusters what, int* answer, CUfunction function, const CUlaunchConfig* config) {
  lane& own = this_lane();
  if (!answer || !config || !function || (config->numAttrs && !config->attrs))
    return CUDA_ERROR_INVALID_VALUE;
  if (!find_kernel(function)) return CUDA_ERROR_INVALID_HANDLE;
  const std::span<const CUlaunchAttribute> attributes{config->attrs, config->numAttrs};
  launch_shape shape;
  if (const CUresult code = check_attributes(attributes, shape); code != CUDA_SUCCESS) return code;
  typed_request r(what, own);
  r.body().put(value_of(function));
  r.body().put(std::array<std::uint32_t, 3>{config->gridDimX, config->gridDimY, config->gridDimZ});
  r.body().put(std::array<std::uint32_t, 3>{config->blockDimX, config->blockDimY, config->blockDimZ});
  r.body().put(std::uint32_t{config->sharedMemBytes});
  put_attributes(r.body(), attributes);
  marshal::number_reply found;
  if (const CUresult code = r.call(found); code != CUDA_SUCCESS) return code;
  *answer = static_cast<int>(found.value);
  return CUDA_SUCCESS;
}

}  // namespace

namespace ends {

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int block,
                                                     std::size_t shared) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuOccupancyMaxActiveBlocksPerMultiprocessor>(own);
  return code == CUDA_SUCCESS ? active_blocks(own, blocks, function, block, shared, 0) : code;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function, int block,
                                                              std::size_t shared, unsigned flags) {
  lane& own = this_lane();
  const CUresult code = gate<api::opcode::cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags>(own);
  return code == CUDA_SUCCESS ? active_blocks(own, blocks, function, block, shared, flags) : code;
}

CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                          CUoccupancyB2DSize shared_of, std::size_t shared, int limit) {
  const CUresult code = gate<api::opcode::cuOccupancyMaxPotentialBlockSize>(this_lane());
  return code == CUDA_SUCCESS ? best_block_size(grid, block, function, shared_of, shared, limit, 0) : code;
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                   CUoccupancyB2DSize shared_of, std::size_t shared,
                                                   int limit, unsigned flags) {
  const CUresult code = gate<api::opcode::cuOccupancyMaxPotentialBlockSizeWithFlags>(this_lane());
  return code == CUDA_SUCCESS ? best_block_size(grid, block, function, shared_of, shared, limit, flags)
                              : code;
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig* config) {
  const CUresult code = gate<api::opcode::cuOccupancyMaxPotentialClusterSize>(this_lane());
  if (code != CUDA_SUCCESS) return code;
  return ask_clusters(api::opcode::cuOccupancyMaxPotentialClusterSize, size, function, config);
}

CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function, const CUlaunchConfig* config) {
  const CUresult code = gate<api::opcode::cuOccupancyMaxActiveClusters>(this_lane());
  if (code != CUDA_SUCCESS) return code;
  return ask_clusters(api::opcode::cuOccupancyMaxActiveClusters, clusters, function, config);
}

}  // namespace ends
}  // namespace outboard::frontend::cuda
