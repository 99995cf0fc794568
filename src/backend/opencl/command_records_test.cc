#include "backend/opencl/command_records.hh"

#include <gtest/gtest.h>

#include <cstring>

#include "base/steady.hh"

namespace outboard::backend::opencl {
namespace {

/// What a platform knows of a command: its handle is the address of one of these.
struct fake_event {
  cl_int status = CL_COMPLETE;
  bool timed = true;
  cl_ulong queued = 0, start = 0, end = 0;
  int references = 1;
};

fake_event& of(cl_event event) { return *reinterpret_cast<fake_event*>(event); }
cl_event handle(fake_event& e) { return reinterpret_cast<cl_event>(&e); }
cl_command_queue queue(std::uintptr_t number) { return reinterpret_cast<cl_command_queue>(number); }

template <class T>
cl_int give(const T& value, void* to) {
  std::memcpy(to, &value, sizeof value);
  return CL_SUCCESS;
}

class command_records_test : public testing::Test {
 protected:
  command_records_test() {
    table_.clRetainEvent = [](cl_event e) { return ++of(e).references, CL_SUCCESS; };
    table_.clReleaseEvent = [](cl_event e) { return --of(e).references, CL_SUCCESS; };
    table_.clGetEventInfo = [](cl_event e, cl_event_info, std::size_t, void* to, std::size_t*) {
      return give(of(e).status, to);
    };
    table_.clGetEventProfilingInfo = [](cl_event e, cl_profiling_info name, std::size_t, void* to,
                                        std::size_t*) {
      if (!of(e).timed) return CL_PROFILING_INFO_NOT_AVAILABLE;
      const fake_event& it = of(e);
      return give(name == CL_PROFILING_COMMAND_QUEUED  ? it.queued
                  : name == CL_PROFILING_COMMAND_START ? it.start
                                                       : it.end,
                  to);
    };
    // Two queues to a device, all of one context.
    table_.clGetCommandQueueInfo = [](cl_command_queue q, cl_command_queue_info name, std::size_t, void* to,
                                      std::size_t*) {
      const auto number = reinterpret_cast<std::uintptr_t>(q);
      return give(name == CL_QUEUE_DEVICE ? 0x100 + number / 2 : std::uintptr_t{0x500}, to);
    };
    for (const std::uintptr_t device : {0x101, 0x102}) records_.add(reinterpret_cast<cl_device_id>(device));
  }

  void give_kernel(fake_event& e, std::uintptr_t in, std::string_view name, std::uint64_t request = 0) {
    const std::uint64_t since = records_.about_to_give();
    e.queued = since - behind, e.start = e.queued + 100, e.end = e.queued + 300;
    records_.given(since, queue(in), handle(e), {.kind = api::work_kind::kernel, .request = request}, name);
  }

  static constexpr std::uint64_t behind = 1'000'000;  // the device's clock
  api::opencl::function_table table_{};
  command_records records_{table_};
};

TEST_F(command_records_test, off_it_keeps_nothing) {
  fake_event e;
  EXPECT_EQ(records_.about_to_give(), 0u);
  records_.given(0, queue(2), handle(e), {}, "k");
  EXPECT_EQ(e.references, 1);
  ASSERT_TRUE(records_.start().ok());
  EXPECT_TRUE(records_.take(true).records.empty());
}

TEST_F(command_records_test, what_is_over_is_told_once_in_its_order_with_its_place) {
  ASSERT_TRUE(records_.start().ok());
  fake_event first, second, third;
  second.status = CL_RUNNING;
  give_kernel(first, 2, "one", 11);
  give_kernel(second, 4, "two", 12);
  give_kernel(third, 3, "one", 13);
  auto got = records_.take(false);
  ASSERT_EQ(got.records.size(), 2u);
  EXPECT_EQ(got.names, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(got.records[0].request, 11u);
  EXPECT_EQ(got.records[1].request, 13u);
  EXPECT_EQ(got.records[0].name, 0u);
  EXPECT_EQ(got.records[1].name, 0u);
  EXPECT_EQ(got.records[0].device, 0u);
  EXPECT_NE(got.records[0].stream, got.records[1].stream);
  EXPECT_EQ(got.records[0].end - got.records[0].begin, 200u);
  EXPECT_EQ(first.references, 1);
  EXPECT_EQ(second.references, 2);

  second.status = CL_COMPLETE;
  got = records_.take(false);
  ASSERT_EQ(got.records.size(), 1u);
  EXPECT_TRUE(got.names.empty());
  EXPECT_EQ(got.records[0].name, 1u);
  EXPECT_EQ(got.records[0].device, 1u);
  EXPECT_TRUE(records_.take(true).records.empty());
}

TEST_F(command_records_test, times_are_on_our_clock) {
  ASSERT_TRUE(records_.start().ok());
  fake_event e;
  const auto before = static_cast<std::uint64_t>(steady_nanoseconds());
  give_kernel(e, 2, "k");
  const auto after = static_cast<std::uint64_t>(steady_nanoseconds());
  const auto got = records_.take(false);
  ASSERT_EQ(got.records.size(), 1u);
  EXPECT_GE(got.records[0].begin, before + 100);
  EXPECT_LE(got.records[0].begin, after + 100);
}

TEST_F(command_records_test, what_failed_has_none_and_what_nobody_timed_is_lost) {
  ASSERT_TRUE(records_.start().ok());
  fake_event failed, untimed;
  failed.status = CL_INVALID_OPERATION, failed.timed = false;
  untimed.timed = false;
  give_kernel(failed, 2, "k");
  give_kernel(untimed, 2, "k");
  const auto got = records_.take(false);
  EXPECT_TRUE(got.records.empty());
  EXPECT_EQ(got.dropped, 1u);
  EXPECT_EQ(failed.references, 1);
  EXPECT_EQ(untimed.references, 1);
}

TEST_F(command_records_test, a_queue_that_takes_the_place_of_another_has_a_number_of_its_own) {
  ASSERT_TRUE(records_.start().ok());
  fake_event first, second;
  give_kernel(first, 2, "k");
  records_.forget(queue(2));
  give_kernel(second, 2, "k");
  const auto got = records_.take(false);
  ASSERT_EQ(got.records.size(), 2u);
  EXPECT_NE(got.records[0].stream, got.records[1].stream);
}

TEST_F(command_records_test, many_come_in_parts_and_the_rest_is_let_go_at_the_end) {
  ASSERT_TRUE(records_.start().ok());
  std::vector<fake_event> all(5000);
  for (fake_event& e : all) give_kernel(e, 2, "k");
  const auto got = records_.take(false);
  EXPECT_TRUE(got.more);
  EXPECT_LT(got.records.size(), all.size());
  records_.drop();
  EXPECT_FALSE(records_.on());
  for (const fake_event& e : all) EXPECT_EQ(e.references, 1);
}

}  // namespace
}  // namespace outboard::backend::opencl
