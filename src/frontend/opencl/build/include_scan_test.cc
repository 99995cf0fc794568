#include "frontend/opencl/build/include_scan.hh"

#include <gtest/gtest.h>

#include <chrono>

namespace outboard::frontend::opencl {
namespace {

using namespace std::string_literals;

/// "name" as q:name, <name> as a:name, what is computed as c:text; `+` before it: the next one.
std::string found(std::string_view text) {
  std::string all;
  for (const include_line& line : scan_includes(text).includes) {
    constexpr std::string_view forms[] = {"q:", "a:", "c:"};
    all.append(all.empty() ? "" : " ").append(line.next ? "+" : "");
    all.append(forms[static_cast<int>(line.form)]).append(line.name);
    if (line.form != include_form::computed) {
      EXPECT_EQ(text.substr(line.at, 1), line.name.substr(0, 1));
    }
  }
  return all;
}

TEST(include_scan, lines_that_include) {
  EXPECT_EQ(found("#include \"a.h\"\n#include <b/c.h>\n#include X\n"), "q:a.h a:b/c.h c:X");
  EXPECT_EQ(found("  #  include\t\"a.h\""), "q:a.h");
  EXPECT_EQ(found("%:include <a.h>\n#import <b.h>\n#include_next <c.h>"), "a:a.h a:b.h +a:c.h");
  EXPECT_EQ(found("\xef\xbb\xbf#include \"a.h\""), "q:a.h") << "a byte order mark";
  EXPECT_EQ(found("#include \"a.h\"\r\n#include \"b.h\"\r\n"), "q:a.h q:b.h");
  EXPECT_EQ(found("#include M2S(INCLUDE_PATH/inc_vendor.h)\n"), "c:M2S(INCLUDE_PATH/inc_vendor.h)");
  EXPECT_EQ(found("#include M /* the rest */ (x) // more\n"), "c:M   (x)");
  EXPECT_EQ(found("#include <usr//share/*.h>\n#include \"a//b.h\""), "a:usr//share/*.h q:a//b.h");
}

TEST(include_scan, what_does_not_include) {
  for (const char* text : {"",
                           "\n",
                           "include \"a.h\"",
                           "int a; #include \"a.h\"",
                           "#inclu de \"a.h\"",
                           "# \"a.h\"",
                           "#include",
                           "#include \"a.h",
                           "#include <a.h\n>",
                           "#include 12",
                           "\"#include <a.h>\"",
                           "const char* s = \"\\\"\\\n#include <a.h>\";",
                           "// #include <a.h>",
                           "// \\\n#include <a.h>",
                           "/* \n#include <a.h>\n*/",
                           "/*",
                           "#",
                           "'\n'/*'*/#\n",
                           "\\",
                           "#include \\",
                           "#define X \\\n#include <a.h>"})
    EXPECT_EQ(found(text), "") << text;
}

TEST(include_scan, conditions_are_not_evaluated) {
  EXPECT_EQ(found("#if 0\n#include <a.h>\n#else\n#include <b.h>\n#endif"), "a:a.h a:b.h");
  EXPECT_EQ(found("#if __has_include(\"a.h\") && defined(X) || __has_include_next ( <b.h> )\n#endif"),
            "q:a.h +a:b.h");
  EXPECT_EQ(found("#elif 'x' == \"__has_include(<a.h>)\" // __has_include(<b.h>)\n#include <c.h>"), "a:c.h");
  EXPECT_EQ(found("#if __has_include\n#include <c.h>"), "a:c.h");
}

TEST(include_scan, comments_and_lines_put_together) {
  EXPECT_EQ(found("/* a \n b */ # /* c \n d */ include /**/ \"a.h\" /* \n */\n#include <b.h>"),
            "q:a.h a:b.h");
  EXPECT_EQ(found("#inc\\\nlude \"a\\\r\n.h\"\n#include \\  \n <b.h>"), "q:a.h a:b.h");
  EXPECT_EQ(found("// don't\n#include <a.h>\nit's /* \n#include <b.h>\n"), "a:a.h a:b.h")
      << "a quote that nobody closes ends with its line, and what is behind it is part of it";
  EXPECT_EQ(found("\"/*\"\n#include <a.h>\n'\"'\n#include <b.h>\n"), "a:a.h a:b.h");
}

TEST(include_scan, macros) {
  const auto all =
      scan_includes(
          "#define A\n#define B \"x.h\" // why\n#define C(a, b) a /* and */ ## b\n# define D() \\\n"
          "  <y.h>\n#define E (1)\n#define V(x, ...) x\n#define\n")
          .macros;
  ASSERT_EQ(all.size(), 7u);
  EXPECT_EQ(all[0], (macro{"A", false, {}, "", 0}));
  EXPECT_EQ(all[1], (macro{"B", false, {}, "\"x.h\"", 0}));
  EXPECT_EQ(all[2], (macro{"C", true, {"a", "b"}, "a   ## b", 0}));
  EXPECT_EQ(all[3], (macro{"D", true, {}, "<y.h>", 0}));
  EXPECT_EQ(all[4], (macro{"E", false, {}, "(1)", 0}));
  EXPECT_EQ(all[5], (macro{"V", true, {"x", "..."}, "x", 0}));
  EXPECT_EQ(all[6].name, "");
  EXPECT_EQ(scan_includes("#define  B  \"x.h\"").macros[0].at, 12u);
}

TEST(include_scan, time_is_linear) {
  const std::size_t n = 4u << 20;
  std::string splices, comments, quotes, names;
  while (splices.size() < n) splices += "\\ \\   ", comments += "/*/", quotes += "\"'", names += "#include <";
  const std::string blanks = "\\" + std::string(n, ' ') + "\\" + std::string(n, '\t');
  const auto began = std::chrono::steady_clock::now();
  for (const std::string& text :
       {splices, comments, quotes, names, blanks, std::string(n, '\\'), std::string(n, '#'),
        "#include <" + std::string(n, 'x'), "#if " + std::string(n, '('), "#define f(" + std::string(n, ',')})
    (void)scan_includes(text);
  // A quarter of a second where it was measured; anything quadratic takes hours.
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(30));
}

}  // namespace
}  // namespace outboard::frontend::opencl
