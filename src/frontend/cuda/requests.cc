#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

CUresult malformed_reply(const lane& own, std::uint32_t code) {
  const api::function_info* function = api::find_function(code);
  own.state().connection.server()->malformed_reply(function ? std::string(function->name)
                                                            : "service " + std::to_string(code));
  return CUDA_ERROR_DEVICE_UNAVAILABLE;
}

}  // namespace outboard::frontend::cuda
