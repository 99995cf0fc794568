// Large transfers over data connections, where this process and the server share no memory: several threads
// move their bytes, piece by piece, and the device works on one piece while others travel.
#include <functional>

#include "frontend/copying/streamed_pieces.hh"
#include "frontend/opencl/home.hh"
#include "frontend/opencl/transfer/transfer.hh"

namespace outboard::frontend::opencl {
namespace {

/// Smaller ones go over the session's own connection (H200, loopback: 1 MiB is written at 20 GB/s instead of
/// 5 and with its finish at 5.5 instead of 3.4, but read at 3.1 instead of 4.5).
constexpr std::uint64_t least_written = 1u << 20, least_read = 4u << 20;

/// nullptr: its bytes go another way.
peer* home_of_stream(const command& c, const place_body& place) {
  const bool is_row = place.form == place_form::row || place.form == place_form::shared;
  if (!is_row || !c.may_be_parted() || !link::instance().server()) return nullptr;
  peer* const home = home_of_call();
  return home->dialer.count() ? home : nullptr;
}

place_body part_of(const place_body& row, const streamed_piece& piece) {
  place_body part = row;
  part.offset += piece.offset;
  part.size = piece.size;
  return part;
}

/// Opens the connections of a context that a transfer finds to be missing.
auto opening(const peer& home, cl_context context, bool to_device) {
  return [&home, context, to_device](data_connections& data) {
    return home.dialer.open(
        data, to_device,
        [context](const marshal::data_open_body& opened) -> std::optional<marshal::data_open_reply> {
          message m(service::data_open);
          marshal::put_body(m.body(), marshal::opencl::connections_body{id_of(context), opened});
          if (m.call() != CL_SUCCESS) return std::nullopt;
          wire::reader from = m.reply();
          auto reply = marshal::take_body<marshal::data_open_reply>(from);
          if (!from.finished()) return (void)m.malformed(), std::nullopt;
          return reply;
        });
  };
}

}  // namespace

cl_int read_streamed(command& c, const place_body& from, const landing& land, bool& moved) {
  peer* const home = land.size < least_read ? nullptr : home_of_stream(c, from);
  if (!home) return CL_SUCCESS;
  context_info& context = *find<context_info>(c.context());
  const use_of_connections data(context.to_host, land.size, opening(*home, c.context(), false));
  if (!data) return CL_SUCCESS;
  moved = true;
  const auto code =
      stream_to_host(*home->server, *data, {land.to, land.size}, [&](const streamed_piece& piece) {
        return post_body(service::read_piece, marshal::opencl::read_piece_body{
                                                  c.body(piece.first, piece.last), part_of(from, piece),
                                                  piece.number, piece.connection, piece.pace});
      });
  // Reads before this one, of the same queue, are complete as well, and the program may look at their bytes.
  if (home->server->copies_pending()) (void)message(service::catch_up).call();
  return code.value_or(CL_DEVICE_NOT_AVAILABLE);
}

cl_int write_streamed(command& c, const place_body& to, const landing& from, bool& moved) {
  peer* const home = from.size < least_written ? nullptr : home_of_stream(c, to);
  if (!home) return CL_SUCCESS;
  context_info& context = *find<context_info>(c.context());
  const use_of_connections data(context.to_device, from.size, opening(*home, c.context(), true));
  if (!data) return CL_SUCCESS;
  moved = true;
  const std::uint64_t in = id_of(c.context());
  const auto code =
      stream_to_device(*home->server, *data, {from.to, from.size}, [&](const streamed_piece& piece) {
        return post_body(service::write_piece,
                         marshal::opencl::write_piece_body{c.body(piece.first, piece.last),
                                                           part_of(to, piece), in, piece.number});
      });
  return code.value_or(CL_DEVICE_NOT_AVAILABLE);
}

}  // namespace outboard::frontend::opencl
