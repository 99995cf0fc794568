#include "frontend/opencl/message.hh"

#include <algorithm>

namespace outboard::frontend::opencl {
namespace {

constexpr cl_int lost = CL_DEVICE_NOT_AVAILABLE;

/// More go before their request, in pieces: a frame takes 16 MiB, and the server works on one while the next
/// travels.
constexpr std::size_t most_inside = 4u << 20;

}  // namespace

message::message(std::uint32_t code)
    : code_(code),
      own_(this_lane()),
      server_(link::instance().server()),
      writer_((own_.request.clear(), own_.request)) {}

cl_int message::post(std::span<const std::byte> bulk, const landing* land) {
  if (link::instance().synchronous()) return call(bulk, land);
  own_.how = std::max(own_.how, answered::posted);
  return server_ && server_->post_any({code_, own_.id, 0, own_.request, bulk, how_}, land) ? CL_SUCCESS
                                                                                           : lost;
}

cl_int message::call(std::span<const std::byte> bulk, const landing* land, unique_fd* descriptor) {
  own_.how = std::max(own_.how, answered::waited);
  if (!server_) return lost;
  return server_->call_any({code_, own_.id, 0, own_.request, bulk}, own_.reply, land, descriptor)
      .value_or(lost);
}

cl_int message::malformed() const {
  const api::opencl::function_info* about = api::opencl::find_function(code_);
  server_->malformed_reply(about ? std::string(about->name) : "request " + std::to_string(code_));
  return lost;
}

cl_int send_bytes(std::span<const std::byte> bytes, sent_bytes& to) {
  to.about = {0, bytes.size(), true};
  to.rest = bytes;
  if (bytes.size() <= most_inside) return CL_SUCCESS;
  to.about.upload = link::instance().next_number();
  to.rest = {};
  for (std::size_t at = 0; at < bytes.size(); at += most_inside) {
    message m(service::upload);
    marshal::put_body(m.body(), marshal::opencl::upload_body{to.about.upload});
    const cl_int code = m.post(bytes.subspan(at, std::min(most_inside, bytes.size() - at)));
    if (code != CL_SUCCESS) return code;
  }
  return CL_SUCCESS;
}

}  // namespace outboard::frontend::opencl
