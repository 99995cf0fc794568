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

std::optional<marshal::data_open_reply> announce(lane& own, const marshal::data_open_body& body) {
  marshal::data_open_reply reply;
  return call<marshal::service::data_open>(own, body, reply) == CUDA_SUCCESS ? std::optional(reply)
                                                                             : std::nullopt;
}

/// Opens the connections of the current context that a copy finds to be missing.
auto opening(lane& own, bool to_device) {
  return [&own, to_device](data_connections& data) {
    return own.state().connection.dialer().open(
        data, to_device, [&own](const marshal::data_open_body& body) { return announce(own, body); });
  };
}

/// The connections are of one context, and so are their blocks.
bool of_current_context(const lane& own, const staged_copy& copy) {
  const auto block = own.state().memory.addresses.find(copy.device);
  return block && block->context == own.owner()->handle;
}

/// May its bytes go over connections of the current context?
bool may_stream(const lane& own, const staged_copy& copy) {
  process& p = own.state();
  return p.connection.dialer().count() != 0 && !p.connection.synchronous() &&
         !p.connection.server()->callbacks_expected() && !any_capture_open() && of_current_context(own, copy);
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
      *own.state().connection.server(), *data, {copy.host, copy.size}, [&](const streamed_piece& piece) {
        return post<marshal::service::data_in>(own, marshal::data_in_body{.to = copy.device + piece.offset,
                                                                          .size = piece.size,
                                                                          .stream = value_of(copy.stream),
                                                                          .number = piece.number,
                                                                          .how = copy.how,
                                                                          .more = !piece.last});
      }));
}

std::optional<CUresult> stream_out(lane& own, const staged_copy& whole) {
  if (!may_stream(own, whole)) return std::nullopt;
  const use_of_connections data(own.owner()->to_host, whole.size, opening(own, false));
  if (!data) return std::nullopt;
  staged_copy copy = whole;
  if (const CUresult code = copy_beginning(own, copy); code != CUDA_SUCCESS) return code;
  return code_of(stream_to_host(*own.state().connection.server(), *data, {copy.host, copy.size},
                                [&](const streamed_piece& piece) {
                                  return post<marshal::service::data_out>(
                                      own, marshal::data_out_body{.from = copy.device + piece.offset,
                                                                  .size = piece.size,
                                                                  .stream = value_of(copy.stream),
                                                                  .number = piece.number,
                                                                  .how = copy.how,
                                                                  .connection = piece.connection,
                                                                  .pace = piece.pace});
                                }));
}

void stream_later(lane& own, const staged_copy& copy) {
  process& p = own.state();
  if (p.connection.dialer().count() == 0 || p.connection.synchronous() || !of_current_context(own, copy))
    return;
  later_copies& later = own.owner()->later;
  const std::unique_lock lock(later.use, std::try_to_lock);
  if (!lock || later.tried) return;
  later.wanted += copy.size;
  if (later.wanted < worth_preparing || any_capture_open()) return;
  later.tried = true;
  marshal::data_open_body body;
  data_connections::links links;
  if (!p.connection.dialer().dial(links, body.tokens)) return;
  // Before the server knows them: it uses them at once.
  const std::uint64_t context = own.owner()->handle;
  body.later = p.connection.server()->arrivals().adopt(context, std::move(links));
  if (!announce(own, body)) p.connection.server()->arrivals().drop(context);
}

}  // namespace outboard::frontend::cuda
