#include "frontend/cuda/requests.hh"

namespace outboard::frontend::cuda {

CUresult malformed_reply(api::opcode code) {
  const auto number = static_cast<std::uint32_t>(code);
  const api::function_info* about = api::find_function(number);
  process::instance().server()->malformed_reply(about ? std::string(about->name)
                                                      : "request " + std::to_string(number));
  return session::lost_code;
}

}  // namespace outboard::frontend::cuda
