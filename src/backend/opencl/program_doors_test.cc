#include "backend/opencl/program_doors.hh"

#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <thread>

namespace outboard::backend::opencl {
namespace {

TEST(ProgramDoors, LetOneAfterTheOtherInAndOthersBeside) {
  int places[2];
  const auto one = reinterpret_cast<cl_program>(&places[0]), other = reinterpret_cast<cl_program>(&places[1]);
  program_doors doors;
  std::optional<program_doors::stay> inside(std::in_place, doors, one);
  const program_doors::stay beside(doors, other);
  std::atomic<bool> entered{false};
  std::thread next([&] {
    const program_doors::stay after(doors, one);
    entered = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_FALSE(entered.load());
  inside.reset();
  next.join();
  EXPECT_TRUE(entered.load());
}

}  // namespace
}  // namespace outboard::backend::opencl
