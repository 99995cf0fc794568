#include "wire/frame.hh"

#include <gtest/gtest.h>

#include <optional>

#include "wire/cursor.hh"
#include "wire/document_testing.hh"
#include "wire/handle.hh"
#include "wire/make_frame.hh"

namespace outboard::wire {
namespace {

using raw_header = std::array<std::byte, header_size>;

raw_header encoded(const frame_header& header) {
  raw_header raw;
  encode_header(header, raw);
  return raw;
}

// Of the document's examples: cuStreamSynchronize (13043) of a stream, by the third thread, in a context.
constexpr std::uint64_t stream = handle::make(6, 1, 1).value, context = handle::make(1, 0, 1).value;
const frame_header sample{.size = 8,
                          .kind = frame_kind::call,
                          .opcode = 13043,
                          .lane = 3,
                          .ticket = 0x0102030405060708,
                          .ack = 7,
                          .context = context};

TEST(Frame, HeaderComesBack) {
  const auto back = decode_header(encoded(sample), max_frame_payload);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->size, sample.size);
  EXPECT_EQ(back->kind, sample.kind);
  EXPECT_EQ(back->flags, 0);
  EXPECT_EQ(back->opcode, sample.opcode);
  EXPECT_EQ(back->lane, sample.lane);
  EXPECT_EQ(back->ticket, sample.ticket);
  EXPECT_EQ(back->ack, sample.ack);
  EXPECT_EQ(back->context, sample.context);
}

/// A header has no length of its own and no redundancy: each flipped bit is refused or changes just its
/// field.
TEST(Frame, EveryFlippedBit) {
  const raw_header whole = encoded(sample);
  int refused = 0;
  for (std::size_t bit = 0; bit < 8 * header_size; ++bit) {
    raw_header flipped = whole;
    flipped[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto got = decode_header(flipped, max_frame_payload);
    if (!got) {
      ++refused;
      EXPECT_FALSE(got.error().message.empty());
      continue;
    }
    EXPECT_LE(got->size, max_frame_payload);
    EXPECT_EQ(encoded(*got), flipped) << bit;
  }
  // Size: bits 25 to 31; kind: 4 to 15, one each that leaves the list; flags: all 16.
  EXPECT_GE(refused, 7 + 12 + 16);
}

TEST(Frame, KindsAreTheListed) {
  for (int kind = 0; kind < 65536; ++kind) {
    raw_header raw = encoded(sample);
    const auto value = static_cast<std::uint16_t>(kind);
    std::memcpy(raw.data() + 4, &value, sizeof value);
    EXPECT_EQ(decode_header(raw, max_frame_payload).ok(),
              kind >= 1 && kind < static_cast<int>(frame_kind::count));
  }
}

TEST(Frame, SizeIsHeldAgainstTheLimitThatHolds) {
  for (const std::uint32_t limit : {0u, max_hello_payload, max_frame_payload}) {
    for (const std::uint32_t size : {0u, limit, limit + 1, ~0u}) {
      const auto got = decode_header(encoded({.size = size}), limit);
      EXPECT_EQ(got.ok(), size <= limit);
      if (!got) {
        EXPECT_NE(got.error().message.find(std::to_string(size)), std::string::npos);
      }
    }
  }
}

/// The document speaks of these numbers.
TEST(Frame, Constants) {
  EXPECT_EQ(header_size, 40u);
  EXPECT_EQ(max_frame_payload, 16842752u);
  EXPECT_EQ(max_hello_payload, 65536u);
  EXPECT_EQ(static_cast<int>(frame_kind::count), 18);
}

TEST(Frame, ExamplesOfTheDocument) {
  std::vector<std::byte> body;
  const auto payload = [&](auto... values) {
    body.clear();
    writer w(body);
    (w.put(values), ...);
    return std::span<const std::byte>(body);
  };
  testing::expect_example("call", make_frame(sample, payload(stream)));
  testing::expect_example("reply", make_frame({.kind = frame_kind::reply,
                                               .opcode = sample.opcode,
                                               .lane = sample.lane,
                                               .ticket = sample.ticket,
                                               .ack = sample.ticket},
                                              payload(std::int32_t{0})));
  testing::expect_example("notice", make_frame({.kind = frame_kind::notice, .ack = 9, .context = context},
                                               payload(std::int32_t{700})));
  const auto place = encode_data_place({5, 4096});
  EXPECT_EQ(decode_data_place(place).what, 5u);
  EXPECT_EQ(decode_data_place(place).offset, 4096u);
  body.assign(place.begin(), place.end());
  writer(body).bytes(std::as_bytes(std::span("abc", 3)));
  testing::expect_example("data", make_frame({.kind = frame_kind::data, .ack = 5}, body));
  testing::expect_example(
      "data_failed", make_frame({.kind = frame_kind::data, .ack = 5}, encode_data_place({5, copy_failed})));
  testing::expect_example("output",
                          make_frame({.kind = frame_kind::output}, std::as_bytes(std::span("\1hi\n", 4))));
  testing::expect_example("lane_end",
                          make_frame({.kind = frame_kind::lane_end, .lane = 3, .ticket = 12, .ack = 9}));
  testing::expect_example("goodbye", make_frame({.kind = frame_kind::goodbye, .ticket = 13, .ack = 9}));
}

}  // namespace
}  // namespace outboard::wire
