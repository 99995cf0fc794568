#include "api/opencl/functions.hh"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include "api/opencl/extensions.hh"
#include "base/testing/places.hh"

namespace outboard::api::opencl {
namespace {

TEST(opencl_functions, are_in_opcode_order_and_once_each) {
  std::set<std::string_view> names;
  std::uint32_t last = 0;
  for (const function_info& f : functions()) {
    EXPECT_GT(static_cast<std::uint32_t>(f.code), last) << f.name;
    last = static_cast<std::uint32_t>(f.code);
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_EQ(f.about.error, parse_error::none) << f.name;
    EXPECT_EQ(find_function(last), &f);
    EXPECT_EQ(find_function(f.name), &f);
  }
  EXPECT_EQ(find_function(200000u), nullptr);
  EXPECT_EQ(find_function("clCreateBuffe"), nullptr);
}

// Every function of cl.h has a line, and no line is of a function that the header does not have.
TEST(opencl_functions, are_those_of_the_header) {
  std::ifstream file(OUTBOARD_OPENCL_HEADER);
  ASSERT_TRUE(file) << OUTBOARD_OPENCL_HEADER;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::regex declared(R"(\b(cl[A-Z]\w*)\s*\()");
  std::set<std::string> in_header;
  for (std::sregex_iterator at(text.begin(), text.end(), declared), end; at != end; ++at)
    in_header.insert((*at)[1]);
  ASSERT_GT(in_header.size(), 100u);
  for (const std::string& name : in_header) EXPECT_NE(find_function(name), nullptr) << name << " has no line";
  for (const function_info& f : functions()) {
    EXPECT_TRUE(f.chapter == "extensions" || in_header.contains(std::string(f.name))) << f.name;
  }
}

// The wire carries opcodes. A line may be appended to its chapter; then append it here too. Nothing else may
// change.
TEST(opencl_functions, opcodes_never_change) {
  const std::string path = in_checkout("src/api/opencl/opcodes.golden");
  std::ifstream golden(path);
  ASSERT_TRUE(golden) << path;
  std::set<std::string_view> listed;
  std::uint32_t code = 0;
  std::string name;
  while (golden >> code >> name) {
    const function_info* f = find_function(code);
    ASSERT_NE(f, nullptr) << "opcode " << code << " of " << name << " is gone";
    EXPECT_EQ(f->name, name) << "opcode " << code << " changed its meaning";
    listed.insert(f->name);
  }
  for (const function_info& f : functions()) {
    EXPECT_TRUE(listed.contains(f.name))
        << "not in opcodes.golden, where outboard_coverage opcodes appends it: "
        << static_cast<std::uint32_t>(f.code) << ' ' << f.name;
  }
}

TEST(opencl_functions, of_extensions_are_lines_of_one_extension_and_no_core_functions) {
  std::set<std::string_view> names;
  for (const extension_function& each : extension_functions()) {
    const function_info* const line = find_function(each.name);
    ASSERT_NE(line, nullptr) << each.name;
    EXPECT_EQ(line->code, each.code);
    EXPECT_EQ(line->chapter, "extensions") << each.name;
    EXPECT_TRUE(each.extension.starts_with("cl_")) << each.extension;
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
  }
  for (const promoted_function& each : promoted_functions()) {
    EXPECT_EQ(find_function(each.name), nullptr) << each.name;
    EXPECT_NE(find_function(static_cast<std::uint32_t>(each.core)), nullptr) << each.name;
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
  }
  static_assert(is_extension<opcode::clSetContentSizeBufferPoCL> && !is_extension<opcode::clSVMAlloc>);
}

}  // namespace
}  // namespace outboard::api::opencl
