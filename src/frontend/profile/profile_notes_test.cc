#include "frontend/profile/profile_notes.hh"

#include <gtest/gtest.h>

namespace outboard::frontend {
namespace {

annotated at(std::int64_t begin, std::int32_t thread) {
  annotated a;
  a.begin = begin;
  a.thread = thread;
  return a;
}

TEST(profile_notes, are_taken_once_and_in_order) {
  profile_notes notes;
  notes.note(at(30, 1));
  notes.note(at(10, 2));
  notes.note(at(20, 17));
  const auto all = notes.take();
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].begin, 10);
  EXPECT_EQ(all[1].begin, 20);
  EXPECT_EQ(all[2].begin, 30);
  EXPECT_TRUE(notes.take().empty());
}

TEST(profile_notes, are_lost_and_counted_when_nobody_takes_them) {
  profile_notes notes;
  for (std::size_t i = 0; i < profile_notes::most_waiting + 5; ++i) notes.note(at(1, 1));
  EXPECT_EQ(notes.lost(), 5u);
  EXPECT_EQ(notes.take().size(), profile_notes::most_waiting);
  notes.note(at(1, 1));
  EXPECT_EQ(notes.take().size(), 1u);
  EXPECT_EQ(notes.lost(), 5u);
}

TEST(profile_notes, a_stream_is_known_by_a_call_that_left_work_in_it) {
  profile_notes notes;
  EXPECT_FALSE(notes.streams());
  notes.name({named_thing::stream, 0x1000, "copies"});
  notes.name({named_thing::stream, 0, "legacy"});
  ASSERT_TRUE(notes.streams());
  notes.note_stream(7, 0x1000);
  notes.note_stream(8, 0x2000);
  notes.note_stream(9, 1);
  EXPECT_EQ(notes.stream_of(7), "copies");
  EXPECT_EQ(notes.stream_of(8), "");
  EXPECT_EQ(notes.stream_of(9), "legacy");
  EXPECT_EQ(notes.stream_of(10), "");
}

TEST(profile_notes, a_threads_name_is_told_when_it_is_new) {
  profile_notes notes;
  notes.name({named_thing::thread, 12, "one"});
  notes.name({named_thing::device, 0, "workhorse"});
  ASSERT_EQ(notes.take_threads().size(), 1u);
  EXPECT_TRUE(notes.take_threads().empty());
  EXPECT_EQ(notes.device(0), "workhorse");
  EXPECT_EQ(notes.device(1), "");
}

}  // namespace
}  // namespace outboard::frontend
