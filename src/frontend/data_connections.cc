#include "frontend/data_connections.hh"

#include <array>

#include "wire/frame.hh"

namespace outboard::frontend {

using transport::io;

bool send_piece(data_link& over, std::uint64_t number, std::span<const std::byte> bytes) {
  wire::frame_header header;
  header.kind = wire::frame_kind::data;
  header.ticket = number;
  header.size = static_cast<std::uint32_t>(bytes.size());
  std::array<std::byte, wire::header_size> raw;
  wire::encode_header(header, raw);
  // iovec has no const form; send() only reads
  const std::array parts{iovec{raw.data(), raw.size()},
                         iovec{const_cast<std::byte*>(bytes.data()), bytes.size()}};
  return over.connection->send(parts).status == io::done;
}

std::optional<CUresult> receive_piece(data_link& over, std::uint64_t number,
                                      std::span<const std::span<std::byte>> into) {
  std::size_t size = 0;
  for (const std::span<std::byte> run : into) size += run.size();
  std::array<std::byte, wire::header_size> raw;
  if (transport::receive_whole(*over.connection, raw) != io::done) return std::nullopt;
  const auto header = wire::decode_header(raw, static_cast<std::uint32_t>(size));
  if (!header || header->kind != wire::frame_kind::data || header->ticket != number) return std::nullopt;
  const auto code = static_cast<CUresult>(header->context);
  if (header->size != (code == CUDA_SUCCESS ? size : 0)) return std::nullopt;
  if (code != CUDA_SUCCESS) return code;
  for (const std::span<std::byte> run : into) {
    if (transport::receive_whole(*over.connection, run) != io::done) return std::nullopt;
  }
  return code;
}

}  // namespace outboard::frontend
