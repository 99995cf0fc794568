#include "api/describe.hh"

#include <gtest/gtest.h>

#include <string>

namespace outboard::api {
namespace {

parse_error error_of(std::string_view text) { return parse(kind::call, text).error; }

TEST(describe, an_empty_text_has_no_parameters) {
  constexpr description d = parse(kind::post, "");
  static_assert(d.error == parse_error::none && d.arity == 0 && d.how == kind::post);
  EXPECT_EQ(d.creates, no_parameter);
  EXPECT_EQ(d.destroys, no_parameter);
}

TEST(describe, directions_and_defaults) {
  constexpr description d = parse(kind::call, "in a, out b, inout c, at d, e");
  static_assert(d.error == parse_error::none && d.arity == 5);
  EXPECT_EQ(d.parameters[0].dir, direction::in);
  EXPECT_EQ(d.parameters[1].dir, direction::out);
  EXPECT_EQ(d.parameters[2].dir, direction::inout);
  EXPECT_EQ(d.parameters[3].dir, direction::at);
  EXPECT_EQ(d.parameters[4].dir, direction::in);
  for (std::size_t i = 0; i < d.arity; ++i) {
    EXPECT_EQ(d.parameters[i].name, std::string(1, static_cast<char>('a' + i)));
    EXPECT_FALSE(d.parameters[i].may_be_null);
    EXPECT_EQ(d.parameters[i].count, count_kind::one);
  }
}

TEST(describe, counts) {
  constexpr description d = parse(kind::call, "out name?[len], in len, in luid[8], in path [ str ], in q ?");
  static_assert(d.error == parse_error::none && d.arity == 5);
  EXPECT_EQ(d.parameters[0].name, "name");
  EXPECT_TRUE(d.parameters[0].may_be_null);
  EXPECT_EQ(d.parameters[0].count, count_kind::parameter);
  EXPECT_EQ(d.parameters[0].count_index, 1u);
  EXPECT_EQ(d.parameters[2].count, count_kind::number);
  EXPECT_EQ(d.parameters[2].number, 8u);
  EXPECT_EQ(d.parameters[3].name, "path");
  EXPECT_EQ(d.parameters[3].count, count_kind::string);
  EXPECT_TRUE(d.parameters[4].may_be_null);
}

TEST(describe, a_name_may_begin_like_a_direction) {
  const description d = parse(kind::call, "in inner, out output, attrib, inoutx");
  ASSERT_EQ(d.error, parse_error::none);
  EXPECT_EQ(d.parameters[0].name, "inner");
  EXPECT_EQ(d.parameters[1].name, "output");
  EXPECT_EQ(d.parameters[2].name, "attrib");
  EXPECT_EQ(d.parameters[2].dir, direction::in);
  EXPECT_EQ(d.parameters[3].name, "inoutx");
}

TEST(describe, words) {
  constexpr description none = parse(kind::call, "in p");
  static_assert(!none.preinit && !none.noctx && !none.unsafe && !none.fence && !none.waits && !none.deferred);
  const description all =
      parse(kind::call, "out p, in q; noctx, unsafe, fence, waits, deferred, creates p, destroys q");
  ASSERT_EQ(all.error, parse_error::none);
  EXPECT_FALSE(all.preinit);
  EXPECT_TRUE(all.noctx && all.unsafe && all.fence && all.waits && all.deferred);
  EXPECT_EQ(all.creates, 0u);
  EXPECT_EQ(all.destroys, 1u);
  const description early = parse(kind::local, "; preinit");
  ASSERT_EQ(early.error, parse_error::none);
  EXPECT_TRUE(early.preinit && early.noctx) << "what works before init needs no context";
}

TEST(describe, what_profilers_are_told_of) {
  constexpr description none = parse(kind::call, "in p");
  static_assert(!none.work && none.graph == graph_change::none && none.pool == pool_change::none &&
                none.adds == added_node::none);
  constexpr description work = parse(kind::post, "in p; deferred, work");
  static_assert(work.work && work.graph == graph_change::may_be_captured);
  constexpr description record = parse(kind::post, "in p; graph captured");
  static_assert(!record.work && record.graph == graph_change::may_be_captured);
  constexpr description into = parse(kind::custom, "in p; graph captures_into");
  static_assert(into.graph == graph_change::captures_into);
  constexpr description trims = parse(kind::call, "in p; noctx, pool trims");
  static_assert(trims.pool == pool_change::trims && trims.graph == graph_change::none);
  constexpr description adds = parse(kind::custom, "out p; adds event_wait");
  static_assert(adds.graph == graph_change::adds_node && adds.adds == added_node::event_wait);
  constexpr description event = parse(kind::post, "in p; records event");
  static_assert(event.object == object_change::records_event && adds.object == object_change::none);
  constexpr description batch = parse(kind::custom, "in p; work, batch");
  static_assert(batch.work && batch.batch && !work.batch);
}

TEST(describe, how_a_function_without_a_request_of_its_own_travels) {
  constexpr description own = parse(kind::custom, "in p");
  static_assert(own.travels == travel::handled && own.via.empty() && has_handler(own) && is_served(own));
  constexpr description both = parse(kind::custom, "in p; via a b, unsafe");
  static_assert(both.error == parse_error::none && both.via == "a b" && both.unsafe && has_handler(both));
  constexpr description other = parse(kind::via, "a b; in p; unsafe");
  static_assert(other.error == parse_error::none && other.via == "a b" && other.unsafe && other.arity == 1);
  static_assert(other.travels == travel::via && !has_handler(other) && !is_served(other));
  constexpr description aside = parse(kind::via, "aside; in p");
  static_assert(aside.error == parse_error::none && aside.travels == travel::aside && !has_handler(aside));
  static_assert(aside.via.empty() && parse(kind::via, "asides; in p").travels == travel::via);
  constexpr description also_aside = parse(kind::via, "aside a; in p");
  static_assert(also_aside.travels == travel::aside && also_aside.via == "a");
  static_assert(parse(kind::call, "in p").travels == travel::generated);
  static_assert(is_served(parse(kind::call, "in p")) && is_served(parse(kind::post, "in p")));
  static_assert(!is_served(parse(kind::local, "in p")) && !has_handler(parse(kind::local, "in p")));
  for (const kind how : {kind::call, kind::post, kind::local})
    EXPECT_EQ(parse(how, "; via a").error, parse_error::word);
  EXPECT_EQ(parse(kind::via, "; in p").error, parse_error::word) << "without a way";
  EXPECT_EQ(parse(kind::via, "a; in p; via b").error, parse_error::word);
  EXPECT_EQ(parse(kind::custom, "; via").error, parse_error::word);
  EXPECT_EQ(parse(kind::custom, "; via a, via b").error, parse_error::word);
  static_assert(parse(kind::local, "in p; uncaptured").uncaptured);
}

TEST(describe, what_is_at_work_when_a_call_returns) {
  constexpr description none = parse(kind::post, "in p");
  static_assert(none.leaves == left_work::none && none.over == over::nothing && none.doubts == doubt::none);
  static_assert(!none.settles && !none.itself && !none.asks && !none.of_object);
  static_assert(!none.light && !none.followed && !none.overtakes && !none.workless);
  constexpr description some =
      parse(kind::post, "in p; leaves copies_in, over stream, doubts record, settles");
  static_assert(some.leaves == left_work::copies_in && copies(some.leaves) && some.over == over::stream &&
                some.doubts == doubt::record && some.settles);
  constexpr description plain =
      parse(kind::post, "in p; itself, asks, of_object, light, followed, overtakes, workless");
  static_assert(plain.itself && plain.asks && plain.of_object);
  static_assert(plain.light && plain.followed && plain.overtakes && plain.workless && !plain.unlocked);
  static_assert(parse(kind::local, "in p; preinit, unlocked").unlocked);
  for (const char* text : {"; leaves", "; leaves nothing", "; over", "; over it", "; doubts", "; doubts all",
                           "; records", "; records events"})
    EXPECT_EQ(parse(kind::post, text).error, parse_error::word) << text;
}

TEST(describe, line_breaks_of_a_long_table_line_are_spaces) {
  const description d = parse(kind::call, "out p,\n  in q;\n  unsafe");
  ASSERT_EQ(d.error, parse_error::none);
  EXPECT_EQ(d.arity, 2u);
  EXPECT_TRUE(d.unsafe);
}

TEST(describe, bad_parameters) {
  EXPECT_EQ(error_of("in 1a"), parse_error::parameter);
  EXPECT_EQ(error_of("in"), parse_error::none) << "a parameter may be called in";
  EXPECT_EQ(error_of("in a b"), parse_error::parameter);
  EXPECT_EQ(error_of("a,,b"), parse_error::parameter);
  EXPECT_EQ(error_of("in *p"), parse_error::parameter);
  EXPECT_EQ(error_of("in p??"), parse_error::parameter);
}

TEST(describe, bad_counts) {
  EXPECT_EQ(error_of("in p[]"), parse_error::count);
  EXPECT_EQ(error_of("in p[0]"), parse_error::count);
  EXPECT_EQ(error_of("in p[4x]"), parse_error::count);
  EXPECT_EQ(error_of("in p[-1]"), parse_error::count);
  EXPECT_EQ(error_of("in p]"), parse_error::count);
  EXPECT_EQ(error_of("in p[99999999999999999999]"), parse_error::count) << "2^64 and more must not wrap";
  EXPECT_EQ(error_of("in p[n], in m"), parse_error::unknown_count);
}

TEST(describe, bad_words) {
  EXPECT_EQ(error_of("in p; often"), parse_error::word);
  EXPECT_EQ(error_of("in p; creates q"), parse_error::word);
  EXPECT_EQ(error_of("in p; destroys"), parse_error::word);
  EXPECT_EQ(error_of("in p; graph grows"), parse_error::word);
  EXPECT_EQ(error_of("in p; pool clones"), parse_error::word);
  EXPECT_EQ(error_of("in p; adds"), parse_error::word);
  EXPECT_EQ(error_of("in p; unsafe; fence"), parse_error::word);
  EXPECT_EQ(error_of("in p; unsafe,,fence"), parse_error::word);
}

TEST(describe, too_many_parameters) {
  std::string text = "p0";
  for (std::size_t i = 1; i < max_parameters; ++i) text += ", p" + std::to_string(i);
  EXPECT_EQ(error_of(text), parse_error::none);
  EXPECT_EQ(error_of(text + ", one_more"), parse_error::too_many);
}

}  // namespace
}  // namespace outboard::api
