// Compares the messages of OpenCL's large transfers over data connections with docs/wire.md.
#include <gtest/gtest.h>

#include "marshal/body_testing.hh"
#include "marshal/opencl/bodies.hh"

namespace outboard::marshal::opencl {
namespace {

using marshal::testing::expect_body;

TEST(data_bodies, arrive_as_they_were_sent_or_not_at_all) {
  constexpr std::uint64_t context = 0x0220000100000000, queue = 0x0230000100000000,
                          buffer = 0x0240000100000000, event = 0x0270000100000000;
  place_body place;
  place.memory = buffer, place.offset = 0x100000, place.size = 0x80000;
  expect_body("connections_body", connections_body{context, {1, {share_token{1}}, 0}});
  expect_body("write_piece_body", write_piece_body{{queue, {event}, 0}, place, context, 7});
  expect_body("read_piece_body", read_piece_body{{queue, {}, event}, place, 8, 2, 100000});
}

}  // namespace
}  // namespace outboard::marshal::opencl
