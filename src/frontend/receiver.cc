#include "frontend/receiver.hh"

#include <array>

#include "transport/resumable/stream.hh"
#include "wire/cursor.hh"
#include "wire/output.hh"

namespace outboard::frontend {
namespace {

error lost_connection(transport::io how, transport::connection& which) {
  const transport::resumable_stream* const stream = transport::stream_of(which);
  const std::string why = stream ? stream->why_ended() : "";
  if (!why.empty()) return {action::reconnect, why};
  return {action::reconnect, how == transport::io::closed ? "the server closed the connection"
                                                          : "the connection to the server broke"};
}

}  // namespace

status receiver::fill(std::span<std::byte> into) {
  const transport::io got = from_.fill(into);
  return got == transport::io::done ? status{} : lost_connection(got, connection_);
}

status receiver::receive_data(const wire::frame_header& header) {
  std::array<std::byte, wire::data_place_size> prefix;
  if (header.size < prefix.size()) return failure("short data frame");
  OUTBOARD_TRY(fill(prefix));
  const auto [ticket, offset] = wire::decode_data_place(prefix);
  const std::size_t size = header.size - prefix.size();
  if (offset == wire::copy_failed) return sink_.copy_failed(ticket), status{};
  places_.clear();
  if (!sink_.landing_places(ticket, offset, size, places_)) return failure("bytes for no copy of ours");
  OUTBOARD_TRY(sink_.before_landing(places_));
  for (const std::span<std::byte> place : places_) OUTBOARD_TRY(fill(place));
  sink_.landed(ticket, offset + size);
  return {};
}

status receiver::receive_aside() {
  wire::reader r(body_);
  const auto piece = marshal::take_body<marshal::aside_body>(r);
  places_.clear();
  if (!r.finished() || piece.size == 0 ||
      !sink_.landing_places(piece.ticket, piece.offset, piece.size, places_))
    return failure("bytes aside for no copy of ours");
  OUTBOARD_TRY(sink_.before_landing(places_));
  OUTBOARD_TRY(sink_.aside(piece, places_));
  sink_.landed(piece.ticket, piece.offset + piece.size);
  return {};
}

/// What it is, then the bytes.
status receiver::receive_output() {
  wire::reader r(body_);
  const auto what = r.get<std::uint8_t>();
  const std::string_view text{reinterpret_cast<const char*>(r.rest().data()), r.rest().size()};
  if (!r.ok() || what < wire::output_text || what > wire::output_log) return failure("malformed output");
  return sink_.output(what, text), status{};
}

/// The transport stops short of the byte that carries it, so nothing behind the header has been read yet.
status receiver::receive_descriptor(const wire::frame_header& header) {
  if (header.size != 0 || from_.has_buffered() || !connection_.what().passes_descriptors) {
    return failure("a descriptor out of place");
  }
  while (true) {
    auto got = connection_.receive_descriptor(transport::no_deadline);
    if (got) return sink_.descriptor(header.ticket, std::move(*got)), status{};
    if (got.error().next != action::retry) return std::move(got).error();
  }
}

status receiver::fill_body(std::vector<std::byte>& into, std::size_t size) {
  into.resize(size);
  return fill(into);
}

status receiver::receive_frame() {
  std::array<std::byte, wire::header_size> raw;
  OUTBOARD_TRY(fill(raw));
  const auto decoded = wire::decode_header(raw, wire::max_frame_payload);
  if (!decoded) return decoded.error();
  const wire::frame_header& header = *decoded;
  received_.store(received_.load(std::memory_order_relaxed) + raw.size() + header.size,
                  std::memory_order_relaxed);
  switch (header.kind) {
    case wire::frame_kind::reply: {
      std::vector<std::byte>* target = sink_.reply_target(header.ticket);
      if (!target) return failure("a reply to no call of ours");
      OUTBOARD_TRY(fill_body(*target, header.size));
      OUTBOARD_TRY(sink_.collect_asides());
      sink_.reply_arrived(header.ticket);
      return {};
    }
    case wire::frame_kind::data:
      return receive_data(header);
    case wire::frame_kind::aside:
      OUTBOARD_TRY(fill_body(body_, header.size));
      return receive_aside();
    case wire::frame_kind::notice: {
      OUTBOARD_TRY(fill_body(body_, header.size));
      wire::reader r(body_);
      const auto code = r.get<std::int32_t>();
      if (!r.finished()) return failure("malformed notice");
      sink_.notice(header.context, code);
      return {};
    }
    case wire::frame_kind::output:
      OUTBOARD_TRY(fill_body(body_, header.size));
      return receive_output();
    case wire::frame_kind::callback: {
      OUTBOARD_TRY(fill_body(body_, header.size));
      wire::reader r(body_);
      const auto errand = marshal::take_body<marshal::callback_body>(r);
      if (!r.finished()) return failure("malformed callback");
      OUTBOARD_TRY(sink_.collect_asides());
      sink_.callback(header.ticket, errand);
      return {};
    }
    case wire::frame_kind::descriptor:
      return receive_descriptor(header);
    case wire::frame_kind::refusal:
      return failure("the server ended the session");
    default:
      return failure("a frame that only clients send");
  }
}

}  // namespace outboard::frontend
