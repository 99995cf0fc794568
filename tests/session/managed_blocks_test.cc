// Managed memory that both sides use at the same time, from inside: the program's side is this thread, the
// kernel's is the worker's memory, and the test says whether the work that names a block has ended.
#include "frontend/memory/managed_blocks.hh"

#include <sys/mman.h>

#include <future>

#include "base/sanitizers.hh"
#include "loopback_session.hh"

namespace outboard::tests {
namespace {

using frontend::managed_blocks;
using frontend::work_flow;

constexpr std::uint64_t granule = 2u << 20, first = under_tsan ? 0x7e8b'0000'0000 : 0x208b'0000'0000;
const work_flow flow{context_handle, 0x77}, other_flow{context_handle, 0x78};

class managed : public loopback_session {
 protected:
  void SetUp() override {
    if (!frontend::page_gate::possible()) GTEST_SKIP() << "this system lets nobody watch pages";
    loopback_session::SetUp();
    start_client();
    ASSERT_TRUE(blocks_.start(*session_, {[this](frontend::lane&, const work_flow&) {
                                            ++asked_;
                                            return busy_ ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
                                          },
                                          [this](frontend::lane&, std::uint64_t) {
                                            while (busy_) std::this_thread::sleep_for(1ms);
                                            return CUDA_SUCCESS;
                                          },
                                          [] { return true; }}));
    own_.id = 1;
    for (std::size_t i = 0; i < 2; ++i) add(i);
  }
  void TearDown() override {
    busy_ = false;
    if (!session_) return;
    blocks_.stop();
    loopback_session::TearDown();
  }

  static std::uint64_t base(std::size_t i) { return first + i * granule; }
  /// As the program has it, and as kernels do.
  static volatile std::uint64_t& here(std::size_t i, std::size_t word = 0) {
    return reinterpret_cast<volatile std::uint64_t*>(base(i))[word];
  }
  volatile std::uint64_t& there(std::size_t i, std::size_t word = 0) {
    return reinterpret_cast<volatile std::uint64_t*>(there_[i])[word];
  }

  /// The worker lives in this process: its half cannot have the same address, as registered memory's may not.
  void add(std::size_t i) {
    std::vector<std::byte> reply;
    frontend::mirror made;
    made.base = base(i);
    made.size = granule;
    made.memory = blocks_.add(made.base, granule, granule, false);
    made.file = blocks_.file();
    ASSERT_NE(made.memory, nullptr);
    ASSERT_EQ(
        call(1, opcode::cuMemHostGetDevicePointer_v2,
             encoded(marshal::host_map_body{made.base, granule, 0, marshal::host_block::registered}), &reply),
        CUDA_SUCCESS);
    wire::reader from(reply);
    there_[i] = made.device_address = marshal::take_body<marshal::address_reply>(from).address;
    ASSERT_NE(there_[i], made.base);
    ASSERT_TRUE(mirrors_.add(made));
  }

  /// What a launch does that names these addresses.
  std::uint64_t launch(const std::vector<std::uint64_t>& words, const work_flow& in = flow) {
    const std::uint64_t number = blocks_.begin(in, std::as_bytes(std::span(words)), false);
    do {
      EXPECT_EQ(mirrors_.send(*session_, own_, false), CUDA_SUCCESS);
    } while (blocks_.reach(in, number));
    blocks_.left(number);
    return number;
  }
  template <class F>
  static bool comes_true(F&& condition) {
    const auto until = std::chrono::steady_clock::now() + 10s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

  frontend::mirrors mirrors_;
  managed_blocks blocks_{mirrors_};
  frontend::lane own_;
  std::array<std::uint64_t, 2> there_{};
  std::atomic<bool> busy_{false};
  std::atomic<int> asked_{0};
};

TEST_F(managed, a_touch_comes_after_the_work_that_names_the_block) {
  here(0) = 1;
  busy_ = true;
  launch({base(0)});
  ASSERT_TRUE(comes_true([&] { return there(0) == 1; }));
  auto touch = std::async(std::launch::async, [] { return std::uint64_t{here(0)}; });
  EXPECT_EQ(touch.wait_for(20ms), std::future_status::timeout);
  there(0) = 2;
  busy_ = false;
  EXPECT_EQ(touch.get(), 2u);
  here(0) = 3;  // open: nobody is asked
  const int asked = asked_;
  EXPECT_EQ(here(0), 3u);
  EXPECT_EQ(asked_, asked);
}

TEST_F(managed, work_that_waits_for_the_touch_gets_it_and_both_talk) {
  busy_ = true;
  launch({base(0)});
  std::atomic<bool> ended{false};
  std::thread kernel([&] {
    for (std::uint64_t round = 1; round <= 20; ++round) {
      while (there(0) != round) std::this_thread::yield();
      there(0, 9000) = round * 100;
      there(0, 1) = round;
    }
    ended = true;
    busy_ = false;
  });
  for (std::uint64_t round = 1; round <= 20; ++round) {
    here(0) = round;
    while (here(0, 1) != round) std::this_thread::yield();
    EXPECT_EQ(here(0, 9000), round * 100);
  }
  kernel.join();
  EXPECT_TRUE(ended);
}

TEST_F(managed, launches_of_others_do_not_put_a_touch_off) {
  busy_ = true;
  launch({base(0)});
  std::atomic<bool> touched{false};
  std::thread launching([&] {
    while (!touched) {
      launch({base(0)}, other_flow);
      std::this_thread::sleep_for(1ms);
    }
  });
  const auto began = std::chrono::steady_clock::now();
  here(0) = 1;
  touched = true;
  launching.join();
  EXPECT_LT(std::chrono::steady_clock::now() - began, managed_blocks::most_patience);
  EXPECT_TRUE(comes_true([&] { return there(0) == 1; }));
}

TEST_F(managed, work_that_changes_what_is_touched_is_waited_for_longer) {
  busy_ = true;
  launch({base(0)});
  const auto began = std::chrono::steady_clock::now();
  std::thread kernel([&] {
    while (std::chrono::steady_clock::now() - began < 4 * managed_blocks::patience) {
      there(0) = there(0) + 1;
      std::this_thread::sleep_for(1ms);
    }
    there(0) = 5;
    busy_ = false;
  });
  EXPECT_EQ(here(0), 5u);
  kernel.join();
}

TEST_F(managed, other_blocks_are_free) {
  busy_ = true;
  launch({base(0)});
  here(1) = 4;
  EXPECT_EQ(here(1), 4u);
  EXPECT_EQ(asked_, 0);
}

TEST_F(managed, what_memory_names_is_closed_with_the_rest) {
  here(0, 5) = base(1) + 64;
  busy_ = true;
  launch({base(0)});
  there(1) = 8;
  auto touch = std::async(std::launch::async, [] { return std::uint64_t{here(1)}; });
  EXPECT_EQ(touch.wait_for(20ms), std::future_status::timeout);
  busy_ = false;
  EXPECT_EQ(touch.get(), 8u);
}

TEST_F(managed, what_is_attached_elsewhere_is_not) {
  here(0, 5) = base(1);
  blocks_.attach(base(1), other_flow.stream);
  busy_ = true;
  launch({base(0)});
  here(1) = 4;
  EXPECT_EQ(asked_, 0);
  launch({base(1)});  // but its name among the parameters counts
  auto touch = std::async(std::launch::async, [] { return std::uint64_t{here(1)}; });
  EXPECT_EQ(touch.wait_for(20ms), std::future_status::timeout);
  busy_ = false;
  EXPECT_EQ(touch.get(), 4u);
}

TEST_F(managed, waits_open_what_they_say_is_complete) {
  busy_ = true;
  launch({base(0)});
  launch({base(1)}, other_flow);
  blocks_.recorded(3, other_flow);
  blocks_.complete(flow, blocks_.mark());
  here(0) = 1;
  EXPECT_EQ(asked_, 0);
  blocks_.complete_event(3);
  here(1) = 1;
  EXPECT_EQ(asked_, 0);
  launch({base(0), base(1)});
  const std::uint64_t mark = blocks_.mark();
  launch({base(1)});
  blocks_.complete_context(context_handle, mark);
  here(0) = 1;
  EXPECT_EQ(asked_, 0);
  auto touch = std::async(std::launch::async, [] { here(1) = 2; });
  EXPECT_EQ(touch.wait_for(20ms), std::future_status::timeout);
  busy_ = false;
  touch.get();
}

TEST_F(managed, host_functions_never_wait) {
  busy_ = true;
  launch({base(0)});
  blocks_.lend();
  here(0) = 6;
  EXPECT_EQ(asked_, 0);
  blocks_.take_back();
  EXPECT_EQ(mirrors_.send(*session_, own_, false), CUDA_SUCCESS);
  EXPECT_TRUE(comes_true([&] { return there(0) == 6; }));
  auto touch = std::async(std::launch::async, [] { return std::uint64_t{here(0)}; });
  EXPECT_EQ(touch.wait_for(20ms), std::future_status::timeout);
  busy_ = false;
  EXPECT_EQ(touch.get(), 6u);
}

TEST_F(managed, streams_that_nobody_else_can_name_are_waited_for_too) {
  busy_ = true;
  launch({base(0)}, {context_handle, work_flow::of_lane(9)});
  there(0) = 9;
  auto touch = std::async(std::launch::async, [] { return std::uint64_t{here(0)}; });
  EXPECT_EQ(touch.wait_for(20ms), std::future_status::timeout);
  EXPECT_LE(asked_, 1);  // another stream, once: behind the launch, which the driver then has
  busy_ = false;
  EXPECT_EQ(touch.get(), 9u);
}

TEST_F(managed, nobody_sleeps_when_the_session_is_over) {
  busy_ = true;
  launch({base(0)});
  auto touch = std::async(std::launch::async, [] { here(0) = 1; });
  EXPECT_EQ(touch.wait_for(20ms), std::future_status::timeout);
  blocks_.stop();
  touch.get();
  EXPECT_EQ(launch({base(0)}), 0u);
}

TEST_F(managed, a_block_that_is_freed_is_open) {
  busy_ = true;
  launch({base(0)});
  auto touch = std::async(std::launch::async, [] { here(0) = 1; });
  EXPECT_EQ(touch.wait_for(20ms), std::future_status::timeout);
  mirrors_.remove(base(0));
  blocks_.remove(base(0));
  touch.get();
}

}  // namespace
}  // namespace outboard::tests
