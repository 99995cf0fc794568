#include "backend/cuda/chapters/launch.hh"
#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"

namespace outboard::backend {
namespace {

CUresult function_of(call& c, const marshal::occupancy_body& body, CUfunction& function) {
  return c.refused != CUDA_SUCCESS ? c.refused : c.objects().resolve(body.kernel, function);
}

using cluster_entry = CUresult (*)(int*, CUfunction, const CUlaunchConfig*);

outcome ask_clusters(call& c, const marshal::cluster_query_body& body, marshal::number_reply& reply,
                     cluster_entry entry) {
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  native_attributes attributes;
  CUresult code = attributes.take(body.attributes, c.objects());
  if (c.refused != CUDA_SUCCESS) code = c.refused;
  CUfunction function = nullptr;
  if (code == CUDA_SUCCESS) code = c.objects().resolve(body.kernel, function);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  CUlaunchConfig config{};
  config.gridDimX = body.grid[0], config.gridDimY = body.grid[1], config.gridDimZ = body.grid[2];
  config.blockDimX = body.block[0], config.blockDimY = body.block[1], config.blockDimZ = body.block[2];
  config.sharedMemBytes = body.shared;
  config.attrs = attributes.data();
  config.numAttrs = attributes.count();
  int answer = 0;
  code = entry(&answer, function, &config);
  reply.value = answer;
  return outcome::answer(code);
}

}  // namespace

namespace ends {

outcome cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(call& c, const marshal::occupancy_body& body,
                                                             marshal::number_reply& reply) {
  CUfunction function = nullptr;
  if (const CUresult code = function_of(c, body, function); code != CUDA_SUCCESS)
    return outcome::answer(code);
  int blocks = 0;
  const CUresult code = call_driver(c.driver().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks,
                                    function, body.block, body.shared, body.flags);
  reply.value = blocks;
  return outcome::answer(code);
}

outcome cuOccupancyMaxPotentialBlockSizeWithFlags(call& c, const marshal::occupancy_body& body,
                                                  marshal::block_size_reply& reply) {
  CUfunction function = nullptr;
  if (const CUresult code = function_of(c, body, function); code != CUDA_SUCCESS)
    return outcome::answer(code);
  const CUresult code = call_driver(c.driver().cuOccupancyMaxPotentialBlockSizeWithFlags, &reply.grid,
                                    &reply.block, function, nullptr, body.shared, body.block, body.flags);
  return outcome::answer(code);
}

outcome cuOccupancyMaxPotentialClusterSize(call& c, const marshal::cluster_query_body& body,
                                           marshal::number_reply& reply) {
  return ask_clusters(c, body, reply, c.driver().cuOccupancyMaxPotentialClusterSize);
}

outcome cuOccupancyMaxActiveClusters(call& c, const marshal::cluster_query_body& body,
                                     marshal::number_reply& reply) {
  return ask_clusters(c, body, reply, c.driver().cuOccupancyMaxActiveClusters);
}

}  // namespace ends
}  // namespace outboard::backend
