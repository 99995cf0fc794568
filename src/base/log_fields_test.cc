#include "base/log_fields.hh"

#include <gtest/gtest.h>

#include <thread>

#include "base/log.hh"

namespace outboard::log {
namespace {

std::vector<field> seen;

TEST(log_fields, belong_to_the_lines_of_their_thread_while_they_live) {
  set_sink([](level, std::string_view) { seen = fields_of_line(); });
  const with_fields outer({{"session", 7}});
  {
    const with_fields inner({{"user", "alice"}, {"seconds", 0.5}});
    error("a line");
    EXPECT_EQ(seen, (std::vector<field>{{"user", "alice"}, {"seconds", 0.5}}));
    std::thread([] { error("of another thread"); }).join();
    EXPECT_EQ(seen, std::vector<field>{});
  }
  error("a line");
  EXPECT_EQ(seen, (std::vector<field>{{"session", 7}}));
  set_lasting_fields({{"worker", 12}});
  error("a line");
  EXPECT_EQ(seen, (std::vector<field>{{"worker", 12}, {"session", 7}}));
  set_lasting_fields({});
  set_sink(nullptr);
}

}  // namespace
}  // namespace outboard::log
