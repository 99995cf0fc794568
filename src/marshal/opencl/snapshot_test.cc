#include "marshal/opencl/snapshot.hh"

#include <gtest/gtest.h>

namespace outboard::marshal::opencl {
namespace {

snapshot sample() {
  return {"a host", {{7, {{1, {2, 3}}, {4, {}}}, {{8, {{5, {6}}}}, {9, {}}}}, {10, {}, {}}}};
}

TEST(snapshot, arrives_as_it_was_sent) {
  const auto bytes = encode(sample());
  const auto back = decode_snapshot(bytes);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->host, "a host");
  ASSERT_EQ(back->platforms.size(), 2u);
  ASSERT_EQ(back->platforms[0].devices.size(), 2u);
  EXPECT_EQ(back->platforms[0].devices[0].handle, 8u);
  EXPECT_EQ(back->platforms[0].devices[0].info[0].value, std::vector<std::uint8_t>{6});
  EXPECT_EQ(encode(*back), bytes);
}

TEST(snapshot, a_truncated_or_extended_snapshot_is_refused) {
  auto bytes = encode(sample());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_snapshot(std::span(bytes).first(size)).ok()) << size;
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_snapshot(bytes).ok());
}

TEST(snapshot, values_are_found_by_name) {
  const auto info = sample().platforms[0].info;
  ASSERT_NE(find(info, 1), nullptr);
  EXPECT_EQ(find(info, 1)->value.size(), 2u);
  EXPECT_EQ(find(info, 2), nullptr);
}

}  // namespace
}  // namespace outboard::marshal::opencl
