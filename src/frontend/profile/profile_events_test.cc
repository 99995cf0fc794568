#include "frontend/profile/profile_events.hh"

#include <gtest/gtest.h>

#include <limits>

namespace outboard::frontend::profile_events {
namespace {

TEST(profile_events, a_kernel) {
  api::work_record w;
  w.stream = 7;
  w.context = 1;
  w.begin = 5'000;
  w.end = 8'250;
  w.grid = {4, 2, 1};
  w.block = {256, 1, 1};
  w.registers = 32;
  w.static_shared = 16;
  w.dynamic_shared = 1024;
  w.graph_node = 99;
  std::string out;
  add_work(out, 12, w, "add(float*, int)", 1'234'567, 1'237'817);
  EXPECT_EQ(out,
            ",\n{\"ph\":\"X\",\"pid\":12,\"name\":\"add(float*, int)\",\"cat\":\"kernel\",\"tid\":7,"
            "\"ts\":1234.567,\"dur\":3.250,\"args\":{\"stream\":7,\"context\":1,\"grid\":[4,2,1],"
            "\"block\":[256,1,1],\"shared memory\":1040,\"registers per thread\":32,\"graph node id\":99}}");
}

TEST(profile_events, a_copy_says_how_fast_it_was) {
  api::work_record w;
  w.kind = api::work_kind::copy;
  w.from = api::memory_side::pageable;
  w.to = api::memory_side::device;
  w.begin = 1'000;
  w.end = 2'000;
  w.bytes = 4'000;
  EXPECT_EQ(name_of(w), "memcpy HtoD (pageable -> device)");
  std::string out;
  add_work(out, 1, w, name_of(w), 0, 1'000);
  EXPECT_NE(out.find(R"("cat":"gpu_memcpy")"), out.npos) << out;
  EXPECT_NE(out.find(R"("bytes":4000,"GB/s":4.00)"), out.npos) << out;
}

TEST(profile_events, a_name_may_hold_anything) {
  std::string out;
  add_note(out, 1, 0, "a \"quoted\" \\ and\na line\xff");
  EXPECT_NE(out.find(R"("a \"quoted\" \\ and\u000aa line\u00ff")"), out.npos) << out;
}

TEST(profile_events, a_name_in_utf8_stays_so_and_what_is_broken_of_it_is_taken_byte_by_byte) {
  std::string out;
  add_note(out, 1, 0, "\u00e4\u2192\U0001f600");
  EXPECT_NE(out.find("\"\u00e4\u2192\U0001f600\""), out.npos) << out;
  out.clear();
  // Too short, too long for what it says, half a pair, beyond the last one.
  add_note(out, 1, 0, "\xe2\x86 \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xe2");
  EXPECT_NE(out.find(R"("\u00e2\u0086 \u00c0\u0080 \u00ed\u00a0\u0080 \u00f4\u0090\u0080\u0080 \u00e2")"),
            out.npos)
      << out;
}

annotated range(annotation_kind kind) {
  annotated a;
  a.kind = kind;
  a.what.text = "step";
  a.thread = 4;
  a.id = 17;
  a.begin = 1'000;
  a.end = 3'500;
  return a;
}

TEST(profile_events, a_range_of_the_program) {
  std::string out;
  annotated a = range(annotation_kind::pushed);
  add_annotation(out, 3, a);
  EXPECT_EQ(
      out,
      ",\n{\"ph\":\"X\",\"pid\":3,\"name\":\"step\",\"cat\":\"nvtx\",\"tid\":4,\"ts\":1.000,\"dur\":2.500,"
      "\"args\":{}}");
  static annotation_domain domain("solver");
  domain.name_category(7, "assembly");
  a.what.domain = &domain;
  a.what.category = 7;
  a.what.color = 0xff00a0e0;
  a.what.payload = -3;
  out.clear();
  add_annotation(out, 3, a);
  EXPECT_NE(out.find(R"("args":{"domain":"solver","category":"assembly","color":"#00a0e0","payload":-3}})"),
            out.npos)
      << out;
  a.what.category = 8;
  a.what.payload = std::numeric_limits<double>::infinity();
  out.clear();
  add_annotation(out, 3, a);
  EXPECT_NE(out.find(R"("category":8,"color":"#00a0e0","payload":"inf"})"), out.npos) << out;
}

TEST(profile_events, a_range_that_ends_where_it_likes_has_a_row_of_its_own) {
  std::string out;
  add_annotation(out, 3, range(annotation_kind::started));
  EXPECT_EQ(
      out,
      ",\n{\"ph\":\"b\",\"pid\":3,\"name\":\"step\",\"cat\":\"nvtx\",\"tid\":4,\"id\":\"0x11\",\"ts\":1.000,"
      "\"args\":{}}"
      ",\n{\"ph\":\"e\",\"pid\":3,\"name\":\"step\",\"cat\":\"nvtx\",\"tid\":4,\"id\":\"0x11\",\"ts\":3."
      "500}");
  out.clear();
  add_annotation(out, 3, range(annotation_kind::mark));
  EXPECT_NE(out.find(R"("ph":"i","pid":3,"name":"step","cat":"nvtx","tid":4,"s":"t","ts":1.000)"), out.npos)
      << out;
}

TEST(profile_events, a_call_before_the_profile_began) {
  std::string out;
  add_call(out, 3, {"cuInit", answered::waited, 4, -1'500, 500});
  EXPECT_EQ(out,
            ",\n{\"ph\":\"X\",\"pid\":3,\"name\":\"cuInit\",\"cat\":\"driver\",\"tid\":4,\"ts\":-1.500,"
            "\"dur\":2.000,\"args\":{\"answer\":\"waited\"}}");
}

TEST(profile_events, an_arrow_goes_from_a_call_to_its_work) {
  std::string out;
  add_call(out, 3, {"cuLaunchKernel", answered::posted, 4, 1'000, 3'000, 17});
  EXPECT_NE(out.find(R"("args":{"answer":"posted","correlation":17}})"), out.npos) << out;
  EXPECT_NE(out.find(R"({"ph":"s","pid":3,"name":"call","cat":"call","id":17,"bp":"e","tid":4,"ts":1.000})"),
            out.npos)
      << out;
  out.clear();
  add_call(out, 3, {"cuCtxSynchronize", answered::waited, 4, 1'000, 3'000, 18});
  EXPECT_EQ(out.find("\"s\""), out.npos) << out;
  api::work_record w;
  w.stream = 7;
  out.clear();
  add_work(out, 12, w, "add", 5'000, 6'000, 17);
  EXPECT_NE(out.find(R"("correlation":17}})"), out.npos) << out;
  EXPECT_NE(out.find(R"({"ph":"f","pid":12,"name":"call","cat":"call","id":17,"bp":"e","tid":7,"ts":5.000})"),
            out.npos)
      << out;
}

TEST(profile_events, names_are_those_of_the_source) {
  EXPECT_EQ(demangled("_Z3addPfi"), "add(float*, int)");
  EXPECT_EQ(demangled("vectoradd"), "vectoradd");
}

}  // namespace
}  // namespace outboard::frontend::profile_events
