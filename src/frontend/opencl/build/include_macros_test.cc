#include "frontend/opencl/build/include_macros.hh"

#include <gtest/gtest.h>

namespace outboard::frontend::opencl {
namespace {

macro_book book_of(const std::string& definitions) {
  macro_book book;
  for (macro& m : scan_includes(definitions).macros) book.add(std::move(m));
  return book;
}

std::string expanded(const std::string& definitions, std::string_view text) {
  std::string all;
  for (const std::string& each : book_of(definitions).expand(text))
    all.append(all.empty() ? "" : " | ").append(each);
  return all;
}

TEST(include_macros, plain_ones) {
  EXPECT_EQ(expanded("#define A \"x.h\"\n", "A"), "\"x.h\"");
  EXPECT_EQ(expanded("#define A B\n#define B <b/c.h>\n", "A"), "<b/c.h>");
  EXPECT_EQ(expanded("#define NAME c\n", "<b/NAME.h>"), "<b/c.h>");
  EXPECT_EQ(expanded("", "\"x.h\""), "\"x.h\"");
  EXPECT_EQ(expanded("#define x y\n", "\"x\" 'x' x1 1x x"), "\"x\" 'x' x1 1x y");
}

TEST(include_macros, functions_strings_and_pasted_names) {
  const std::string hashcat =
      "#define INCLUDE_PATH /usr/share/x-1/OpenCL\n#define XM2S(x) #x\n#define M2S(x) XM2S(x)\n";
  EXPECT_EQ(expanded(hashcat, "M2S(INCLUDE_PATH/inc_vendor.h)"), "\"/usr/share/x-1/OpenCL/inc_vendor.h\"");
  EXPECT_EQ(expanded(hashcat, "XM2S( INCLUDE_PATH/a )"), "\"INCLUDE_PATH/a\"") << "no replacing in #x";
  EXPECT_EQ(expanded("#define J(a, b) <a##b.h>\n#define v 1\n", "J(v, v)"), "<vv.h>");
  EXPECT_EQ(expanded("#define J(a, b) K(a, b)\n#define K(a, b) <a ## b.h>\n#define v 1\n", "J (v, v2)"),
            "<1v2.h>");
  EXPECT_EQ(expanded("#define S(x) #x\n", "S(a\"\\q\"  b)"), "\"a\\\"\\\\q\\\" b\"");
  EXPECT_EQ(expanded("#define F(a) <a>\n", "F((1,2))"), "<(1,2)>");
  EXPECT_EQ(expanded("#define F(a) <a>\n", "F"), "F");
  EXPECT_EQ(expanded("#define F(a) <a>\n", "F(b"), "F(b");
  EXPECT_EQ(expanded("#define F() <a>\n", "F()"), "<a>");
}

TEST(include_macros, each_definition_is_tried) {
  EXPECT_EQ(expanded("#define A <a.h>\n#define A <b.h>\n#define A <a.h>\n", "A"), "<a.h> | <b.h>");
  EXPECT_EQ(expanded("#define D d\n#define D e\n#define F 1\n#define F 2\n", "<D/F/D>"),
            "<d/1/d> | <d/2/d> | <e/1/e> | <e/2/e>");
  EXPECT_EQ(expanded("#define A B\n#define A C\n#define B 1\n#define B 2\n", "A"), "1 | 2 | C");
}

TEST(include_macros, ones_that_never_end) {
  EXPECT_EQ(expanded("#define A A\n", "A"), "A");
  EXPECT_EQ(expanded("#define A B\n#define B <A>\n", "A"), "<A>");
  std::string doubling = "#define M0 xxxxxxxxxxxxxxxx\n";
  for (int i = 1; i < 60; ++i) {
    const std::string before = std::to_string(i - 1);
    doubling += "#define M" + std::to_string(i) + " M" + before + " M" + before + "\n";
  }
  EXPECT_EQ(expanded(doubling, "M59"), "");
  EXPECT_EQ(expanded("#define F(x) x x\n", "F(F(F(F(a))))"), "a a a a a a a a a a a a a a a a");
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += "#define A" + std::to_string(i % 7) + " <" + std::to_string(i) + ">\n";
  EXPECT_EQ(book_of(many).expand("A0 A1 A2 A3 A4 A5 A6").size(), 64u);
}

TEST(include_macros, what_is_a_name) {
  include_line line;
  EXPECT_TRUE(read_header_name(" \"a b.h\" ", line));
  EXPECT_EQ(line.name, "a b.h");
  EXPECT_EQ(line.form, include_form::quoted);
  EXPECT_TRUE(read_header_name("<a>", line));
  EXPECT_EQ(line.form, include_form::angled);
  for (const char* text : {"", "a", "\"", "<", "\"a\" b", "\"a\"\"b\"", "<a", "<a\"", "\"a>"})
    EXPECT_FALSE(read_header_name(text, line)) << text;
}

}  // namespace
}  // namespace outboard::frontend::opencl
