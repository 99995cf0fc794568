// The words preinit, noctx and unsafe against what a real driver answered (testdata/*-580.txt).
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "api/cuda/functions.hh"
#include "base/testing/places.hh"

namespace outboard::api {
namespace {

struct measured {
  std::string name, stream, without_context, global_capture, blocking_capture;
};

std::vector<measured> read_measured() {
  std::ifstream in(in_checkout("src/api/cuda/testdata/capture-580.txt"));
  std::vector<measured> all;
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    measured m;
    words >> m.name >> m.stream >> m.without_context >> m.global_capture >> m.blocking_capture;
    EXPECT_FALSE(words.fail()) << line;
    all.push_back(m);
  }
  return all;
}

bool implemented(const function_info& f) {
  return f.about.how != kind::later && f.about.how != kind::refused;
}

// Functions with a stream carry no noctx: with a default stream they need a context, with another they do
// not.
TEST(measured, noctx_says_what_works_without_a_context) {
  int compared = 0;
  for (const measured& m : read_measured()) {
    const function_info* f = find_function(m.name);
    ASSERT_NE(f, nullptr) << m.name;
    if (!implemented(*f) || m.stream != "-" || m.without_context == "-") continue;
    EXPECT_EQ(f->about.noctx, m.without_context != "201") << m.name;
    ++compared;
  }
  EXPECT_GT(compared, 70);
}

// A query of the capturing stream itself is refused by what the front-end knows of that stream, whatever the
// class.
TEST(measured, unsafe_says_what_a_capture_elsewhere_may_forbid) {
  std::set<std::string> refused, seen;
  for (const measured& m : read_measured()) {
    if (m.stream == "same") continue;
    seen.insert(m.name);
    const bool legacy = m.stream == "null";  // known from the argument, so the word need not say it
    if (m.global_capture.starts_with("900/901")) refused.insert(m.name);
    if (!legacy && m.blocking_capture.starts_with("906")) refused.insert(m.name);
  }
  for (const std::string& name : seen) {
    const function_info* f = find_function(name);
    ASSERT_NE(f, nullptr) << name;
    if (implemented(*f)) {
      EXPECT_EQ(f->about.unsafe, refused.contains(name)) << name;
    }
  }
}

bool takes_context(const function_info& f) {
  if (f.chapter == "primary_context") return true;  // by device: 201 says that nothing is retained
  for (std::size_t i = 0; i < f.about.arity; ++i) {
    const std::string_view name = f.about.parameters[i].name;
    if (name == "ctx" || name == "hCtx") return true;
  }
  return false;
}

// With zero arguments "not initialised" and "no context" come first in most functions; a null context means
// the current.
TEST(measured, what_asks_for_init_or_a_context_says_so) {
  std::ifstream in(in_checkout("src/api/cuda/testdata/checks-580.txt"));
  int compared = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    std::string name, before_init, without_context;
    ASSERT_TRUE(words >> name >> before_init >> without_context) << line;
    const function_info* f = find_function(name);
    ASSERT_NE(f, nullptr) << name;
    if (!implemented(*f)) continue;
    EXPECT_FALSE(f->about.preinit && before_init == "3") << name;
    EXPECT_FALSE(f->about.noctx && without_context == "201" && !takes_context(*f)) << name;
    ++compared;
  }
  EXPECT_GT(compared, 200);
}

}  // namespace
}  // namespace outboard::api
