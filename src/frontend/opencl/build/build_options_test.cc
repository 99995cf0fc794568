#include "frontend/opencl/build/build_options.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::opencl {
namespace {

std::string folders(std::string_view options) {
  std::string all;
  for (const build_option& o : read_options(options)) {
    if (o.what == build_option::kind::folder)
      all.append(all.empty() ? "" : "|").append(o.path).append("@").append(std::to_string(o.at));
  }
  return all;
}

std::string macros(std::string_view options) {
  std::string all;
  for (const build_option& o : read_options(options)) {
    if (o.what != build_option::kind::definition) continue;
    const macro m = macro_of(o);
    all.append(all.empty() ? "" : "|").append(m.name);
    for (const std::string& p : m.parameters) all.append("(").append(p).append(")");
    all.append("=").append(m.body);
    if (!o.path.empty()) all.append(" at ").append(o.path).append("@").append(std::to_string(o.at));
  }
  return all;
}

TEST(build_options, folders) {
  EXPECT_EQ(folders("-I inc -Iother -cl-std=CL1.2 -I/a/b"), "inc@3|other@9|/a/b@31");
  EXPECT_EQ(folders("-I \"my dir\" \"-Imy other\" -I\"/a b\"/c"), "my dir@4|my other@15|/a b/c@28");
  EXPECT_EQ(folders("-I my\\ dir"), "my dir@3");
  EXPECT_EQ(folders("-I"), "");
  EXPECT_EQ(folders("-I  "), "");
  EXPECT_EQ(folders("-I \"\""), "");
  EXPECT_EQ(folders("-I \"open"), "open@4");
  EXPECT_EQ(folders("x-Ia -cl-I b"), "");
  EXPECT_EQ(folders("\t-I\n a\\"), "a\\@5");
}

TEST(build_options, definitions) {
  EXPECT_EQ(macros("-DA -D B=2 -D C= -DD=x=y"), "A=1|B=2|C=|D=x=y");
  EXPECT_EQ(macros("-D XM2S(x)=#x -DM(a,b)=a"), "XM2S(x)=#x|M(a)(b)=a");
  EXPECT_EQ(macros("-D INCLUDE_PATH=/usr/share/x"), "INCLUDE_PATH=/usr/share/x at /usr/share/x@16");
  EXPECT_EQ(macros("-DX=\\\"/a/b.h\\\""), "X=\\\"/a/b.h\\\" at /a/b.h@6|X=\"/a/b.h\" at /a/b.h@6");
  EXPECT_EQ(macros("-D \"X=</a b>\""), "=\"X </a b>\" at /a b@7|X=</a b> at /a b@7");
  EXPECT_EQ(macros("-DX=a/b"), "X=a/b");
}

TEST(build_options, text_that_goes_into_another) {
  EXPECT_EQ(with_insertions("abc", {{2, "-"}, {0, "+"}, {2, "-"}, {3, "!"}}), "+ab-c!");
  EXPECT_EQ(with_insertions("", {}), "");
}

}  // namespace
}  // namespace outboard::frontend::opencl
