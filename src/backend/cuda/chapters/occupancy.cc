#include "backend/cuda/driver_call.hh"
#include "backend/cuda/ends.hh"
#include "backend/cuda/launch_decoding.hh"

namespace outboard::backend {
namespace {

CUresult function_of(call& c, const marshal::occupancy_body& body, CUfunction& function) {
  const CUresult code = c.refused != CUDA_SUCCESS ? c.refused : c.objects().resolve(body.kernel, function);
  if (code == CUDA_SUCCESS) c.session.uses().of_kernel(c.objects(), body.kernel, c.header);
  return code;
}

using cluster_entry = CUresult (*)(int*, CUfunction, const CUlaunchConfig*);

/// The fields of marshal::cluster_query_body, in its order.
outcome ask_clusters(call& c, cluster_entry entry) {
  const auto kernel = c.body.get<std::uint64_t>();
  const auto grid = c.body.get<std::array<std::uint32_t, 3>>();
  const auto block = c.body.get<std::array<std::uint32_t, 3>>();
  const auto shared = c.body.get<std::uint32_t>();
  native_attributes attributes;
  CUresult code = c.refused;
  if (!attributes.take(c.body, c.objects(), code) || !c.body.finished()) return outcome::malformed();
  if (!entry) return outcome::answer(CUDA_ERROR_NOT_SUPPORTED);
  CUfunction function = nullptr;
  if (code == CUDA_SUCCESS) code = c.objects().resolve(kernel, function);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  c.session.uses().of_kernel(c.objects(), kernel, c.header);
  CUlaunchConfig config{};
  config.gridDimX = grid[0], config.gridDimY = grid[1], config.gridDimZ = grid[2];
  config.blockDimX = block[0], config.blockDimY = block[1], config.blockDimZ = block[2];
  config.sharedMemBytes = shared;
  config.attrs = attributes.data();
  config.numAttrs = attributes.count();
  int answer = 0;
  code = entry(&answer, function, &config);
  marshal::put_body(c.reply, marshal::number_reply{answer});
  return outcome::answer(code);
}

}  // namespace

namespace ends {

outcome cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(call& c, const marshal::occupancy_body& body) {
  CUfunction function = nullptr;
  CUresult code = function_of(c, body, function);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  int blocks = 0;
  code = call_driver(c.driver().cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, function,
                     body.block, body.shared, body.flags);
  marshal::put_body(c.reply, marshal::number_reply{blocks});
  return outcome::answer(code);
}

outcome cuOccupancyMaxPotentialBlockSizeWithFlags(call& c, const marshal::occupancy_body& body) {
  CUfunction function = nullptr;
  CUresult code = function_of(c, body, function);
  if (code != CUDA_SUCCESS) return outcome::answer(code);
  marshal::block_size_reply reply;
  code = call_driver(c.driver().cuOccupancyMaxPotentialBlockSizeWithFlags, &reply.grid, &reply.block,
                     function, nullptr, body.shared, body.block, body.flags);
  marshal::put_body(c.reply, reply);
  return outcome::answer(code);
}

outcome cuOccupancyMaxPotentialClusterSize(call& c) {
  return ask_clusters(c, c.driver().cuOccupancyMaxPotentialClusterSize);
}

outcome cuOccupancyMaxActiveClusters(call& c) {
  return ask_clusters(c, c.driver().cuOccupancyMaxActiveClusters);
}

}  // namespace ends
}  // namespace outboard::backend
