#include "backend/opencl/program_doors.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/asleep_testing.hh"

namespace outboard::backend::opencl {
namespace {

TEST(program_doors, let_one_after_the_other_in_and_others_beside) {
  int places[2];
  const auto one = reinterpret_cast<cl_program>(&places[0]), other = reinterpret_cast<cl_program>(&places[1]);
  program_doors doors;
  std::optional<program_doors::stay> inside(std::in_place, doors, one);
  const program_doors::stay beside(doors, other);
  std::atomic<bool> entered{false};
  seen_thread waiting;
  std::thread next([&] {
    waiting.here();
    const program_doors::stay after(doors, one);
    entered = true;
  });
  EXPECT_TRUE(waiting.falls_asleep());
  EXPECT_FALSE(entered.load());
  inside.reset();
  next.join();
  EXPECT_TRUE(entered.load());
}

}  // namespace
}  // namespace outboard::backend::opencl
