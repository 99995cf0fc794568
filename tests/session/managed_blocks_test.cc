// Managed memory that both sides use at the same time, from inside: this thread is the program, the worker's
// memory stands for the kernels, and the test decides whether the work that names a block has ended.
#include "frontend/cuda/memory/managed_blocks.hh"

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
                                            ++waited_;
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
  /// The block as the program sees it, and as kernels see it.
  static volatile std::uint64_t& here(std::size_t i, std::size_t word = 0) {
    return reinterpret_cast<volatile std::uint64_t*>(base(i))[word];
  }
  volatile std::uint64_t& there(std::size_t i, std::size_t word = 0) {
    return reinterpret_cast<volatile std::uint64_t*>(there_[i])[word];
  }

  /// The worker is in this process, so its half cannot have the same address; nor may that of registered
  /// memory.
  void add(std::size_t i) {
    std::vector<std::byte> reply;
    frontend::mirror made;
    made.base = base(i);
    made.size = granule;
    made.memory = blocks_.add(made.base, granule, false);
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

  /// Does what a launch that names these addresses does.
  std::uint64_t launch(const std::vector<std::uint64_t>& words, const work_flow& in = flow) {
    const std::uint64_t number = blocks_.begin(in, std::as_bytes(std::span(words)), false);
    do {
      EXPECT_EQ(mirrors_.send(*session_, own_), CUDA_SUCCESS);
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

  /// Touches a page in another thread, and returns once the touch has been noticed: the work is being asked
  /// about.
  template <class F>
  auto touch(F&& body) {
    const int questions = asked_ + waited_;
    began_ = std::chrono::steady_clock::now();
    auto touching = std::async(std::launch::async, std::forward<F>(body));
    EXPECT_TRUE(comes_true([&] { return asked_ + waited_ > questions; })) << "the touch did not wait";
    return touching;
  }
  /// Whether the touch still waits. Once the patience with busy work is over, it need not.
  template <class T>
  bool waits(const std::future<T>& touching) const {
    const bool over = touching.wait_for(0s) == std::future_status::ready;
    return !over || std::chrono::steady_clock::now() - began_ >= managed_blocks::patience;
  }

  frontend::mirrors mirrors_;
  managed_blocks blocks_{mirrors_};
  frontend::lane own_;
  std::array<std::uint64_t, 2> there_{};
  std::chrono::steady_clock::time_point began_{};
  std::atomic<bool> busy_{false};
  std::atomic<int> asked_{0}, waited_{0};  ///< for one flow, for all of a context
};

TEST_F(managed, a_touch_waits_for_the_work_that_names_the_block) {
  here(0) = 1;
  busy_ = true;
  launch({base(0)});
  ASSERT_TRUE(comes_true([&] { return there(0) == 1; }));
  auto touching = touch([] { return here(0); });
  EXPECT_TRUE(waits(touching));
  there(0) = 2;
  busy_ = false;
  EXPECT_EQ(touching.get(), 2u);
  here(0) = 3;  // open: no request is sent
  const int asked = asked_;
  EXPECT_EQ(here(0), 3u);
  EXPECT_EQ(asked_, asked);
}

TEST_F(managed, work_that_waits_for_the_touch_sees_it_and_both_sides_talk) {
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

TEST_F(managed, a_touch_waits_longer_for_work_that_changes_the_block) {
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

TEST_F(managed, other_blocks_are_open) {
  busy_ = true;
  launch({base(0)});
  here(1) = 4;
  EXPECT_EQ(here(1), 4u);
  EXPECT_EQ(asked_, 0);
}

TEST_F(managed, blocks_whose_addresses_are_in_memory_are_closed_too) {
  here(0, 5) = base(1) + 64;
  busy_ = true;
  launch({base(0)});
  there(1) = 8;
  auto touching = touch([] { return here(1); });
  EXPECT_TRUE(waits(touching));
  busy_ = false;
  EXPECT_EQ(touching.get(), 8u);
}

TEST_F(managed, a_block_attached_to_another_stream_stays_open) {
  here(0, 5) = base(1);
  blocks_.attach(base(1), other_flow.stream);
  busy_ = true;
  launch({base(0)});
  here(1) = 4;
  EXPECT_EQ(asked_, 0);
  launch({base(1)});  // but its address among the parameters counts
  auto touching = touch([] { return here(1); });
  EXPECT_TRUE(waits(touching));
  busy_ = false;
  EXPECT_EQ(touching.get(), 4u);
}

TEST_F(managed, a_wait_opens_the_blocks_of_completed_work) {
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
  auto touching = touch([] { here(1) = 2; });
  EXPECT_TRUE(waits(touching));
  busy_ = false;
  touching.get();
}

TEST_F(managed, a_host_function_never_waits_for_a_block) {
  busy_ = true;
  launch({base(0)});
  blocks_.lend();
  here(0) = 6;
  EXPECT_EQ(asked_, 0);
  blocks_.take_back();
  EXPECT_EQ(mirrors_.send(*session_, own_), CUDA_SUCCESS);
  EXPECT_TRUE(comes_true([&] { return there(0) == 6; }));
  auto touching = touch([] { return here(0); });
  EXPECT_TRUE(waits(touching));
  busy_ = false;
  EXPECT_EQ(touching.get(), 6u);
}

TEST_F(managed, a_touch_waits_for_streams_that_only_their_thread_can_name) {
  busy_ = true;
  launch({base(0)}, {context_handle, work_flow::of_lane(9)});
  there(0) = 9;
  auto touching = touch([] { return here(0); });
  EXPECT_TRUE(waits(touching));
  EXPECT_EQ(asked_, 0);
  busy_ = false;
  EXPECT_EQ(touching.get(), 9u);
}

TEST_F(managed, a_touch_ends_with_the_session) {
  busy_ = true;
  launch({base(0)});
  auto touching = touch([] { here(0) = 1; });
  EXPECT_TRUE(waits(touching));
  blocks_.stop();
  touching.get();
  EXPECT_EQ(launch({base(0)}), 0u);
}

TEST_F(managed, a_freed_block_is_open) {
  busy_ = true;
  launch({base(0)});
  auto touching = touch([] { here(0) = 1; });
  EXPECT_TRUE(waits(touching));
  mirrors_.remove(base(0));
  blocks_.remove(base(0));
  touching.get();
}

}  // namespace
}  // namespace outboard::tests
