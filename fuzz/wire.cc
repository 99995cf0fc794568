// The first bytes of a connection: frame headers and the messages of the hello. An accepted message must stay
// the same when written and read again.
#include <array>
#include <span>

#include "base/check.hh"
#include "wire/frame.hh"
#include "wire/hello.hh"

using namespace outboard;

namespace {

template <class Decode>
void round_trip(Decode decode, std::span<const std::byte> bytes) {
  auto message = decode(bytes);
  if (!message.ok()) return;
  const auto written = wire::encode(*message);
  auto again = decode(written);
  CHECK(again.ok());
  CHECK(wire::encode(*again) == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data) + 1, size - 1);
  switch (data[0] % 5) {
    case 0:
      round_trip(wire::decode_greeting, bytes);
      break;
    case 1:
      round_trip(wire::decode_hello, bytes);
      break;
    case 2:
      round_trip(wire::decode_welcome, bytes);
      break;
    case 3:
      round_trip(wire::decode_refusal, bytes);
      break;
    case 4:
      if (bytes.size() >= wire::header_size) {
        const auto first = bytes.first<wire::header_size>();
        auto header = wire::decode_header(first, wire::max_frame_payload);
        if (!header.ok()) break;
        CHECK(header->size <= wire::max_frame_payload);
        std::array<std::byte, wire::header_size> again;
        wire::encode_header(*header, again);
        CHECK(std::equal(again.begin(), again.end(), first.begin()));
      }
      break;
  }
  return 0;
}
