#include "device/work_backlog.hh"

#include <gtest/gtest.h>

#include <thread>

namespace outboard::device {
namespace {

api::work_record copy(std::uint64_t bytes) {
  api::work_record w;
  w.kind = api::work_kind::copy;
  w.bytes = bytes;
  return w;
}

TEST(work_backlog, what_came_first_is_taken_first_and_in_pieces) {
  work_backlog list(100, 4);
  for (std::uint64_t i = 0; i < 10; ++i) list.note(copy(i));
  std::uint64_t next = 0;
  for (const std::size_t expected : {4u, 4u, 2u}) {
    EXPECT_FALSE(list.empty());
    const recorded_work done = list.take();
    ASSERT_EQ(done.records.size(), expected);
    for (const api::work_record& w : done.records) EXPECT_EQ(w.bytes, next++);
    EXPECT_EQ(done.more, next < 10);
    EXPECT_EQ(done.dropped, 0u);
  }
  EXPECT_TRUE(list.empty());
  EXPECT_TRUE(list.take().records.empty());
}

TEST(work_backlog, a_name_comes_once_and_with_its_first_record) {
  work_backlog list;
  list.note_kernel({}, "add");
  list.note_kernel({}, "mul");
  list.note_kernel({}, "add");
  const recorded_work first = list.take();
  EXPECT_EQ(first.names, (std::vector<std::string>{"add", "mul"}));
  ASSERT_EQ(first.records.size(), 3u);
  EXPECT_EQ(first.records[0].name, 0u);
  EXPECT_EQ(first.records[1].name, 1u);
  EXPECT_EQ(first.records[2].name, 0u);
  list.note_kernel({}, "div");
  list.note_kernel({}, "mul");
  const recorded_work second = list.take();
  EXPECT_EQ(second.names, std::vector<std::string>{"div"});
  ASSERT_EQ(second.records.size(), 2u);
  EXPECT_EQ(second.records[0].name, 2u);
  EXPECT_EQ(second.records[1].name, 1u);
}

TEST(work_backlog, what_finds_no_room_is_counted_and_so_is_what_the_device_lost) {
  work_backlog list(2, 100);
  list.note(copy(1));
  list.note_lost(5);
  list.note_kernel({}, "kept");
  list.note_kernel({}, "dropped");
  list.note(copy(2));
  const recorded_work done = list.take();
  EXPECT_EQ(done.records.size(), 2u);
  EXPECT_EQ(done.dropped, 7u);
  EXPECT_EQ(done.names, std::vector<std::string>{"kept"});
  list.note(copy(3));  // there is room again
  const recorded_work later = list.take();
  ASSERT_EQ(later.records.size(), 1u);
  EXPECT_EQ(later.records[0].bytes, 3u);
  EXPECT_EQ(later.dropped, 7u);
}

TEST(work_backlog, nothing_is_lost_between_threads) {
  constexpr std::uint64_t each = 20'000;
  work_backlog list(4 * each, 1000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < each; ++i) list.note(copy(1));
    });
  std::uint64_t taken = 0;
  while (taken < 2 * each) taken += list.take().records.size();
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(taken, 2 * each);
  EXPECT_EQ(list.take().dropped, 0u);
}

}  // namespace
}  // namespace outboard::device
