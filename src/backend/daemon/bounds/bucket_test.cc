#include "backend/daemon/bounds/bucket.hh"

#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

TEST(bucket, gives_so_many_at_once_and_so_many_a_second) {
  bucket b(3, 10);
  const auto began = bucket::clock::now();
  EXPECT_TRUE(b.full(began));
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(b.take(began));
  EXPECT_FALSE(b.take(began));
  EXPECT_FALSE(b.take(began + 99ms));
  EXPECT_TRUE(b.take(began + 101ms));
  EXPECT_FALSE(b.take(began + 150ms));
  EXPECT_FALSE(b.full(began + 350ms));
  EXPECT_TRUE(b.full(began + 1h)) << "but not fuller than full";
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(b.take(began + 1h));
  EXPECT_FALSE(b.take(began + 1h));
}

TEST(bucket, takes_all_of_an_amount_or_nothing) {
  bucket b(100, 1);
  const auto now = bucket::clock::now();
  EXPECT_FALSE(b.take(now, 101));
  EXPECT_TRUE(b.take(now, 60));
  EXPECT_FALSE(b.take(now, 60));
  EXPECT_TRUE(b.has(now, 40));
  EXPECT_TRUE(b.take(now, 40));
}

}  // namespace
}  // namespace outboard::backend
