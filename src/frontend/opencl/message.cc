#include "frontend/opencl/message.hh"

#include <algorithm>
#include <string>

namespace outboard::frontend::opencl {
namespace {

/// Larger amounts travel before their request, in pieces: a frame holds 16 MiB, and the server works on one
/// while the next travels.
constexpr std::size_t most_inside = 4u << 20;

}  // namespace

message::message(std::uint32_t code)
    : code_(code),
      own_(this_lane()),
      server_(back_ends::instance().server()),
      writer_((own_.request.clear(), own_.request)) {}

cl_int message::post(std::span<const std::byte> bulk, const landing* land) {
  if (back_ends::instance().synchronous()) return call(bulk, land);
  own_.how = std::max(own_.how, answered::posted);
  return server_ && server_->post_any({code_, own_.id, 0, own_.request, bulk}, land) ? CL_SUCCESS : lost;
}

cl_int message::call(std::span<const std::byte> bulk, const landing* land, unique_fd* descriptor) {
  const std::optional<cl_int> code = exchange(bulk, land, descriptor);
  if (!code) return lost;
  return *code == CL_SUCCESS ? decoded(*code, [](wire::reader&) {}) : *code;
}

std::optional<cl_int> message::exchange(std::span<const std::byte> bulk, const landing* land,
                                        unique_fd* descriptor) {
  own_.how = std::max(own_.how, answered::waited);
  if (!server_) return std::nullopt;
  return server_->call_any({code_, own_.id, 0, own_.request, bulk}, own_.reply, land, descriptor);
}

cl_int message::end_session() {
  const api::opencl::function_info* const function = api::opencl::find_function(code_);
  server_->malformed_reply(function ? std::string(function->name) : "request " + std::to_string(code_));
  return lost;
}

cl_int send_bytes(std::span<const std::byte> bytes, sent_bytes& to) {
  to.about = {0, bytes.size(), true};
  to.rest = bytes;
  if (bytes.size() <= most_inside) return CL_SUCCESS;
  to.about.upload = back_ends::instance().next_number();
  to.rest = {};
  for (std::size_t at = 0; at < bytes.size(); at += most_inside) {
    message m(service::upload);
    marshal::put_body(m.body(), marshal::opencl::upload_body{.number = to.about.upload});
    const cl_int code = m.post(bytes.subspan(at, std::min(most_inside, bytes.size() - at)));
    if (code != CL_SUCCESS) return code;
  }
  return CL_SUCCESS;
}

}  // namespace outboard::frontend::opencl
