#include "backend/daemon/bounds/bounded_log.hh"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outboard::backend {
namespace {

using namespace std::chrono_literals;

std::vector<std::string> seen;

struct bounded_log_test : testing::Test {
  bounded_log_test() {
    seen.clear();
    log::set_level(log::level::info);
    log::set_sink([](log::level, std::string_view text) { seen.emplace_back(text); });
  }
  ~bounded_log_test() override {
    log::set_sink(nullptr);
    log::set_level(log::level::error);
  }
  void run_for(std::chrono::milliseconds time) {
    bool over = false;
    loop.after(time, [&over] { over = true; });
    while (!over) loop.run_once();
  }

  event_loop loop = std::move(*event_loop::make());
};

TEST_F(bounded_log_test, writes_some_lines_of_each_source_and_counts_the_others) {
  bounded_log bounded(loop, {.at_once = 3, .per_second = 0.001, .between_reports = 50ms});
  for (int i = 0; i < 5; ++i) bounded.info("a", "a did ", i);
  bounded.info("b", "b did one thing");
  for (int i = 0; i < 4; ++i) bounded.info("c", "c did ", i);
  EXPECT_EQ(seen, (std::vector<std::string>{"a did 0", "a did 1", "a did 2", "b did one thing", "c did 0",
                                            "c did 1", "c did 2"}));
  seen.clear();
  run_for(80ms);
  EXPECT_EQ(seen, (std::vector<std::string>{"2 more lines about a are left out",
                                            "1 more line about c is left out"}));
  seen.clear();
  run_for(80ms);
  EXPECT_EQ(seen, std::vector<std::string>{}) << "each is reported once";
}

TEST_F(bounded_log_test, reports_at_its_end_what_was_left_out) {
  {
    bounded_log bounded(loop, {.at_once = 1, .per_second = 0.001});
    for (int i = 0; i < 1000; ++i) bounded.info("a", "a");
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"a", "999 more lines about a are left out"}));
}

TEST_F(bounded_log_test, is_bounded_for_many_sources_together) {
  constexpr int sources = 100000;
  {
    bounded_log bounded(loop, {.at_once_of_all = 5, .per_second_of_all = 0.001, .sources = 8, .named = 2});
    for (int i = 0; i < sources; ++i) bounded.info(std::to_string(i), "line");
    for (int i = 0; i < 10; ++i) bounded.info("6", "line");
  }
  ASSERT_EQ(seen.size(), 8u);
  EXPECT_EQ(std::vector<std::string>(seen.begin(), seen.begin() + 5), std::vector<std::string>(5, "line"));
  EXPECT_EQ(seen[5], "99992 more lines about other addresses are left out");
  EXPECT_EQ(seen[6], "11 more lines about 6 are left out");
  EXPECT_EQ(seen[7], "2 more lines about other addresses are left out");
}

TEST_F(bounded_log_test, forgets_sources_that_have_become_quiet) {
  bounded_log bounded(loop, {.at_once = 2, .per_second = 100, .sources = 1, .between_reports = 50ms});
  bounded.info("a", "a");
  run_for(80ms);
  bounded.info("b", "b");
  bounded.info("b", "b");
  bounded.info("b", "b");
  run_for(80ms);
  EXPECT_EQ(seen.back(), "1 more line about b is left out");
}

TEST_F(bounded_log_test, counts_nothing_while_the_level_is_off) {
  log::set_level(log::level::warn);
  bounded_log bounded(loop, {.at_once = 1, .per_second = 0.001});
  for (int i = 0; i < 10; ++i) bounded.info("a", "a");
  log::set_level(log::level::info);
  bounded.info("a", "b");
  EXPECT_EQ(seen, std::vector<std::string>{"b"});
}

}  // namespace
}  // namespace outboard::backend
