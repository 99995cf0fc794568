#include "wire/frame.hh"

#include <cstring>

namespace outboard::wire {
namespace {

template <class T>
std::byte* store(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}

template <class T>
T load(const std::byte*& at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  at += sizeof value;
  return value;
}

}  // namespace

std::array<std::byte, data_place_size> encode_data_place(const data_place& place) {
  std::array<std::byte, data_place_size> out;
  store(store(out.data(), place.what), place.offset);
  return out;
}

data_place decode_data_place(std::span<const std::byte, data_place_size> in) {
  data_place place;
  const std::byte* at = in.data();
  place.what = load<std::uint64_t>(at);
  place.offset = load<std::uint64_t>(at);
  return place;
}

void encode_header(const frame_header& header, std::span<std::byte, header_size> out) {
  std::byte* at = out.data();
  at = store(at, header.size);
  at = store(at, static_cast<std::uint16_t>(header.kind));
  at = store(at, header.flags);
  at = store(at, header.opcode);
  at = store(at, header.lane);
  at = store(at, header.ticket);
  at = store(at, header.ack);
  store(at, header.context);
}

result<frame_header> decode_header(std::span<const std::byte, header_size> in, std::uint32_t max_payload) {
  frame_header header;
  const std::byte* at = in.data();
  header.size = load<std::uint32_t>(at);
  const auto kind = load<std::uint16_t>(at);
  header.flags = load<std::uint16_t>(at);
  header.opcode = load<std::uint32_t>(at);
  header.lane = load<std::uint32_t>(at);
  header.ticket = load<std::uint64_t>(at);
  header.ack = load<std::uint64_t>(at);
  header.context = load<std::uint64_t>(at);
  if (kind == 0 || kind >= static_cast<std::uint16_t>(frame_kind::count)) {
    return failure("frame of unknown kind " + std::to_string(kind));
  }
  if (header.flags != 0) return failure("frame with unknown flags " + std::to_string(header.flags));
  if (header.size > max_payload) {
    return failure("frame of " + std::to_string(header.size) + " bytes, the limit is " +
                   std::to_string(max_payload));
  }
  header.kind = static_cast<frame_kind>(kind);
  return header;
}

}  // namespace outboard::wire
