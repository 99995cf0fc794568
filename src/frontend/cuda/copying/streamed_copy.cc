#include "frontend/cuda/copying/streamed_copy.hh"

#include <functional>

#include "frontend/copying/copy_pieces.hh"
#include "frontend/copying/streamed_pieces.hh"
#include "frontend/cuda/contexts.hh"
#include "frontend/cuda/remote.hh"
#include "frontend/data_dialer.hh"
#include "marshal/data_bodies.hh"

namespace outboard::frontend::cuda {
namespace {

std::optional<marshal::data_open_reply> tell_of(lane& own, const marshal::data_open_body& body) {
  request_of<marshal::service::data_open> r(own, body);
  marshal::data_open_reply reply;
  if (r.call(reply) != CUDA_SUCCESS) return std::nullopt;
  return reply;
}

/// Opens the connections of the current context that a copy finds to be missing.
auto opening(lane& own, bool to_device) {
  return [&own, to_device](data_connections& data) {
    return process::instance().dialer().open(
        data, to_device, [&own](const marshal::data_open_body& body) { return tell_of(own, body); });
  };
}

/// The connections are of one context, and so are their blocks.
bool of_current_context(const lane& own, const staged_copy& copy) {
  const auto block = process::instance().memory().addresses().find(copy.device);
  return block && block->context == own.owner()->handle;
}

/// May its bytes go over connections of the current context?
bool may_stream(const lane& own, const staged_copy& copy) {
  process& p = process::instance();
  return p.dialer().count() != 0 && !p.synchronous() && !p.server()->callbacks_expected() &&
         !any_capture_open() && of_current_context(own, copy);
}

CUresult code_of(std::optional<std::int32_t> streamed) {
  return streamed ? static_cast<CUresult>(*streamed) : CUDA_ERROR_DEVICE_UNAVAILABLE;
}

}  // namespace

std::optional<CUresult> stream_in(lane& own, const staged_copy& copy) {
  if (!may_stream(own, copy)) return std::nullopt;
  const use_of_connections data(own.owner()->to_device, copy.size, opening(own, true));
  if (!data) return std::nullopt;
  return code_of(stream_to_device(
      *process::instance().server(), *data, {copy.host, copy.size}, [&](const streamed_piece& piece) {
        request_of<marshal::service::data_in> r(
            own, marshal::data_in_body{copy.device + piece.offset, piece.size, value_of(copy.stream),
                                       piece.number, copy.how, !piece.last});
        return r.post();
      }));
}

std::optional<CUresult> stream_out(lane& own, const staged_copy& whole) {
  if (!may_stream(own, whole)) return std::nullopt;
  const use_of_connections data(own.owner()->to_host, whole.size, opening(own, false));
  if (!data) return std::nullopt;
  staged_copy copy = whole;
  if (const CUresult code = copy_beginning(own, copy); code != CUDA_SUCCESS) return code;
  return code_of(stream_to_host(
      *process::instance().server(), *data, {copy.host, copy.size}, [&](const streamed_piece& piece) {
        request_of<marshal::service::data_out> r(
            own, marshal::data_out_body{copy.device + piece.offset, piece.size, value_of(copy.stream),
                                        piece.number, copy.how, piece.connection, piece.pace});
        return r.post();
      }));
}

void stream_later(lane& own, const staged_copy& copy) {
  process& p = process::instance();
  if (p.dialer().count() == 0 || p.synchronous() || !of_current_context(own, copy)) return;
  later_copies& later = own.owner()->later;
  const std::unique_lock lock(later.use, std::try_to_lock);
  if (!lock || later.tried) return;
  later.wanted += copy.size;
  if (later.wanted < worth_preparing || any_capture_open()) return;
  later.tried = true;
  marshal::data_open_body body;
  data_connections::links links;
  if (!p.dialer().dial(links, body.tokens)) return;
  // Before the server knows them: it uses them at once.
  const std::uint64_t context = own.owner()->handle;
  body.later = p.server()->arrivals().adopt(context, std::move(links));
  if (!tell_of(own, body)) p.server()->arrivals().drop(context);
}

}  // namespace outboard::frontend::cuda
