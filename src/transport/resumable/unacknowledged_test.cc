#include "transport/resumable/unacknowledged.hh"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>

namespace outboard::transport {
namespace {

iovec part_of(const std::vector<std::byte>& bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

std::vector<std::byte> kept_from(const unacknowledged& kept, std::uint64_t from, std::size_t step) {
  std::vector<std::byte> all;
  while (true) {
    const auto run = kept.run_at(from, step);
    if (run.empty()) return all;
    all.insert(all.end(), run.begin(), run.end());
    from += run.size();
  }
}

// Everything that can be done with it, at random, against a plain list of bytes.
TEST(unacknowledged, keeps_what_was_sent_in_its_order) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    unacknowledged kept;
    std::deque<std::byte> model;
    std::uint64_t begin = 0;
    std::deque<std::vector<std::byte>> lent;  // stays as it is until the next settle()
    for (int step = 0; step < 300; ++step) {
      const std::size_t size = random() % 5 == 0 ? random() % 200000 : random() % 300;
      std::vector<std::byte> bytes(size);
      for (std::byte& b : bytes) b = static_cast<std::byte>(random());
      switch (random() % 6) {
        case 0: {
          const auto owner = std::make_shared<std::vector<std::byte>>(bytes);
          kept.lend(*owner, owner);
          break;
        }
        case 1:
          lent.push_back(bytes);
          kept.lend(lent.back(), nullptr);
          break;
        case 2:
          kept.settle();
          for (auto& each : lent) std::fill(each.begin(), each.end(), std::byte{0xee});
          lent.clear();
          bytes.clear();
          break;
        case 3: {
          bytes.clear();
          const std::size_t gone = model.empty() ? 0 : random() % (model.size() + 1);
          begin += gone;
          model.erase(model.begin(), model.begin() + static_cast<std::ptrdiff_t>(gone));
          kept.forget_until(begin);
          break;
        }
        default: {
          const iovec part = part_of(bytes);
          kept.copy({&part, 1});
          break;
        }
      }
      model.insert(model.end(), bytes.begin(), bytes.end());
      ASSERT_EQ(kept.size(), model.size());
      ASSERT_EQ(kept.begin(), begin);
    }
    const auto all = kept_from(kept, begin, 1000);
    ASSERT_TRUE(std::equal(all.begin(), all.end(), model.begin(), model.end()));
  }
}

TEST(unacknowledged, lets_owners_go_with_their_bytes) {
  unacknowledged kept;
  auto owner = std::make_shared<std::vector<std::byte>>(100);
  kept.lend(*owner, owner);
  kept.forget_until(99);
  EXPECT_EQ(owner.use_count(), 2);
  kept.forget_until(100);
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_TRUE(kept.run_at(100, 10).empty());
}

TEST(unacknowledged, drops_everything_at_once) {
  unacknowledged kept;
  const std::vector<std::byte> some(70000);
  const iovec part = part_of(some);
  kept.copy({&part, 1});
  kept.drop();
  EXPECT_EQ(kept.size(), 0u);
  EXPECT_TRUE(kept.run_at(5, 10).empty());
  kept.copy({&part, 1});
  EXPECT_EQ(kept.begin(), 70000u);
  EXPECT_EQ(kept_from(kept, 70000, 4096).size(), 70000u);
}

}  // namespace
}  // namespace outboard::transport
