#include "backend/cuda/code/first_uses.hh"

#include <gtest/gtest.h>

namespace outboard::backend {
namespace {

constexpr auto function = static_cast<std::uint8_t>(api::handle_kind::function);
constexpr auto context_kind = static_cast<std::uint8_t>(api::handle_kind::context);

class first_uses_test : public ::testing::Test {
 protected:
  std::uint64_t make(std::uint32_t index, std::uint32_t generation = 1) {
    const std::uint64_t id = wire::handle::make(function, index, generation).value;
    EXPECT_TRUE(objects_.create(id, this, {1, 0, in(0), {}}));
    return id;
  }
  static std::uint64_t in(std::uint32_t context) {
    return wire::handle::make(context_kind, context, 1).value;
  }
  void use(std::uint64_t id, std::uint64_t ticket, std::uint64_t context) {
    wire::frame_header asked;
    asked.ticket = ticket, asked.context = context;
    uses_.of_kernel(objects_, id, asked);
  }
  std::vector<std::uint64_t> tickets() const {
    std::vector<std::uint64_t> all;
    for (const first_use& u : uses_.all(objects_)) all.push_back(u.ticket);
    return all;
  }

  object_tables objects_;
  first_uses uses_;
};

TEST_F(first_uses_test, the_first_of_each_kernel_in_each_context_counts) {
  const std::uint64_t a = make(0), b = make(1);
  use(b, 10, in(0)), use(a, 11, in(0)), use(b, 12, in(0)), use(a, 13, in(1)), use(a, 14, in(1));
  EXPECT_EQ(tickets(), (std::vector<std::uint64_t>{10, 11, 13}));
}

TEST_F(first_uses_test, contexts_of_any_number_are_told_apart) {
  const std::uint64_t a = make(0);
  for (std::uint32_t context = 60; context < 70; ++context) use(a, 100 + context, in(context));
  for (std::uint32_t context = 60; context < 70; ++context) use(a, 200 + context, in(context));
  EXPECT_EQ(tickets().size(), 10u);
  EXPECT_EQ(tickets().back(), 169u);
}

TEST_F(first_uses_test, without_a_context_it_is_that_of_its_creation) {
  const std::uint64_t a = make(0);
  use(a, 10, 0), use(a, 11, in(0));
  ASSERT_EQ(tickets(), std::vector<std::uint64_t>{10});
  EXPECT_EQ(uses_.all(objects_).front().context, in(0));
}

TEST_F(first_uses_test, variables_stand_between_the_kernels) {
  const std::uint64_t a = make(0), b = make(1);
  use(a, 10, in(0));
  EXPECT_TRUE(uses_.of_variable(objects_, {11, in(0), a, "x"}));
  EXPECT_FALSE(uses_.of_variable(objects_, {12, in(0), a, "x"}));
  EXPECT_TRUE(uses_.of_variable(objects_, {13, in(0), a, "y"}));
  use(b, 12, in(0));
  EXPECT_EQ(tickets(), (std::vector<std::uint64_t>{10, 11, 12, 13}));
}

TEST_F(first_uses_test, a_context_that_is_gone_takes_its_uses_along) {
  const std::uint64_t a = make(0);
  use(a, 10, in(0)), use(a, 11, in(1));
  uses_.forget_context(objects_, in(0));
  EXPECT_EQ(tickets(), std::vector<std::uint64_t>{11});
  const std::uint64_t next = wire::handle::make(context_kind, 0, 2).value;  // in its place
  use(a, 12, next), use(a, 13, next), use(a, 14, in(1));
  EXPECT_EQ(tickets(), (std::vector<std::uint64_t>{11, 12}));
}

TEST_F(first_uses_test, what_is_gone_is_not_told_and_not_kept) {
  for (std::uint32_t generation = 1; generation <= 5000; ++generation) {
    const std::uint64_t id = make(0, generation);
    use(id, generation, in(0));
    if (generation < 5000) objects_.erase(id);
  }
  EXPECT_EQ(tickets(), std::vector<std::uint64_t>{5000});
  EXPECT_LE(uses_.size(), 2048u);
}

}  // namespace
}  // namespace outboard::backend
