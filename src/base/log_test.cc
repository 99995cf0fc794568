#include "base/log.hh"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace outboard::log {
namespace {

std::vector<std::string> seen;

struct log_test : testing::Test {
  log_test() {
    seen.clear();
    set_sink([](level l, std::string_view text) {
      seen.push_back(std::string(name(l)) + "|" + std::string(text));
    });
  }
  ~log_test() override {
    set_sink(nullptr);
    set_level(level::error);
  }
};

TEST_F(log_test, is_silent_by_default_except_errors) {
  warn("not seen");
  error("seen ", 42, " of ", std::string("them"));
  EXPECT_EQ(seen, std::vector<std::string>{"error|seen 42 of them"});
}

TEST_F(log_test, writes_up_to_the_level_that_was_set) {
  set_level(level::info);
  info("a");
  debug("b");
  EXPECT_EQ(seen, std::vector<std::string>{"info|a"});
}

TEST_F(log_test, keeps_a_line_one_line) {
  error("name\nwith \x1b[31mtricks");
  EXPECT_EQ(seen, std::vector<std::string>{"error|name?with ?[31mtricks"});
}

TEST_F(log_test, writes_to_stderr_when_nobody_listens) {
  set_sink(nullptr);
  set_level(level::warn);
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  error("one");
  warn("two");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "outboard: one\noutboard: warn: two\n");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

TEST_F(log_test, writes_nothing_when_it_is_off) {
  set_level(level::off);
  error("one");
  EXPECT_TRUE(seen.empty());
}

TEST(log_level, is_parsed_by_its_name) {
  EXPECT_EQ(parse_level("warn"), level::warn);
  EXPECT_EQ(parse_level("off"), level::off);
  EXPECT_EQ(parse_level("loud"), std::nullopt);
}

}  // namespace
}  // namespace outboard::log
