#include "frontend/copying/data_connections.hh"

#include <algorithm>
#include <array>

#include "transport/resumable/stream.hh"
#include "wire/frame.hh"

namespace outboard::frontend {

using transport::io;

namespace {

/// A body that came in that time: while it waits for a header the line may be idle.
void note_pace(data_link& over, std::size_t size, transport::clock::duration took) {
  constexpr std::size_t enough = 64u << 10;
  if (size < enough) return;
  const double now =
      std::chrono::duration<double, std::nano>(took).count() * (1u << 20) / static_cast<double>(size);
  const std::uint32_t known = over.pace.load(std::memory_order_relaxed);
  const double next = known ? known + (now - known) / 4 : now;
  over.pace.store(static_cast<std::uint32_t>(std::clamp(next, 1.0, 4e9)), std::memory_order_relaxed);
}

/// Behind the header, which says that it comes packed.
bool receive_packed(data_link& over, std::uint32_t size, std::span<const std::span<std::byte>> into,
                    std::size_t whole) {
  over.packed.resize(size);
  const auto began = transport::clock::now();
  if (transport::receive_whole(*over.connection, over.packed) != io::done) return false;
  note_pace(over, size, transport::clock::now() - began);
  if (into.size() == 1) return marshal::unpack_piece(over.packed, into.front());
  over.unpacked.resize(whole);
  if (!marshal::unpack_piece(over.packed, over.unpacked)) return false;
  std::span<const std::byte> rest(over.unpacked);
  for (const std::span<std::byte> run : into) {
    std::ranges::copy(rest.first(run.size()), run.begin());
    rest = rest.subspan(run.size());
  }
  return true;
}

}  // namespace

bool send_piece(data_link& over, std::uint64_t number, std::span<const std::byte> piece) {
  std::span<const std::byte> bytes = piece;
  wire::frame_header header;
  header.kind = wire::frame_kind::data;
  if (over.packer) {
    if (const auto packed = over.packer->pack(piece); !packed.empty()) {
      bytes = packed;
      header.kind = wire::frame_kind::packed;
    }
  }
  header.ticket = number;
  header.size = static_cast<std::uint32_t>(bytes.size());
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  // iovec has no const form; send() only reads
  const std::array parts{iovec{raw.data(), raw.size()},
                         iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}};
  const auto began = transport::clock::now();
  // A small piece is sooner copied than its arrival is heard of.
  const bool lent = header.kind == wire::frame_kind::data && bytes.size() >= transport::piece_told_at_once;
  auto* const stream = lent ? transport::stream_of(*over.connection) : nullptr;
  const transport::io_result sent =
      stream ? stream->send_lent(std::span(parts).first(1), bytes, nullptr) : over.connection->send(parts);
  if (sent.status != io::done) return false;
  if (over.packer) over.packer->went(bytes.size(), transport::clock::now() - began);
  return true;
}

void settle_pieces(data_link& over, transport::deadline until) {
  if (auto* const stream = transport::stream_of(*over.connection)) stream->settle(until);
}

std::optional<std::int32_t> receive_piece(data_link& over, std::uint64_t number,
                                          std::span<const std::span<std::byte>> into) {
  std::size_t size = 0;
  for (const std::span<std::byte> run : into) size += run.size();
  std::array<std::byte, wire::header_size> raw;
  if (transport::receive_whole(*over.connection, raw) != io::done) return std::nullopt;
  const auto header = wire::decode_header(raw, static_cast<std::uint32_t>(size));
  if (!header || header->ticket != number) return std::nullopt;
  if (header->kind == wire::frame_kind::packed) {
    if (!receive_packed(over, header->size, into, size)) return std::nullopt;
    return 0;
  }
  if (header->kind != wire::frame_kind::data) return std::nullopt;
  const auto code = static_cast<std::int32_t>(header->context);
  if (header->size != (code == 0 ? size : 0)) return std::nullopt;
  if (code != 0) return code;
  const auto began = transport::clock::now();
  for (const std::span<std::byte> run : into) {
    if (transport::receive_whole(*over.connection, run) != io::done) return std::nullopt;
  }
  note_pace(over, size, transport::clock::now() - began);
  return code;
}

}  // namespace outboard::frontend
