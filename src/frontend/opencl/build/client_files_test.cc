#include "frontend/opencl/build/client_files.hh"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/temporary_folder.hh"

namespace outboard::frontend::opencl {
namespace {

namespace fs = std::filesystem;

/// Files below a folder of the test's, which is the current one.
class ClientFiles : public testing::Test {
 protected:
  ClientFiles() : before_(fs::current_path()) {
    here_ = fs::canonical(make_temporary_folder("client-files-test").value());
    fs::current_path(here_);
  }
  ~ClientFiles() override {
    fs::current_path(before_);
    fs::remove_all(here_);
  }

  static void write(const std::string& path, const std::string& text) {
    if (fs::path(path).has_parent_path()) fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
  /// Names below the test's folder.
  std::string names(const client_files& found) const {
    std::string all;
    for (const auto& [path, text] : found.files) {
      EXPECT_TRUE(path.starts_with(here_ + "/")) << path;
      all.append(all.empty() ? "" : " ").append(path.substr(here_.size() + 1));
    }
    return all;
  }
  std::string found(std::string_view text, const std::string& options = {}) const {
    const client_files files = find_client_files({text}, options);
    EXPECT_EQ(files.problem, "");
    EXPECT_EQ(files.here, here_);
    return names(files);
  }

  std::string here_;

 private:
  fs::path before_;
};

TEST_F(ClientFiles, where_compilers_look) {
  write("x.h", ""), write("a/x.h", ""), write("b/x.h", ""), write("b/only.h", "");
  EXPECT_EQ(found("#include \"x.h\""), "x.h");
  EXPECT_EQ(found("#include <x.h>", "-I a -I b"), "a/x.h x.h") << "the current folder's, whoever takes it";
  EXPECT_EQ(found("#include_next <x.h>", "-I a -I b"), "a/x.h b/x.h x.h");
  EXPECT_EQ(found("#include <only.h>", "-I a -I b"), "b/only.h");
  EXPECT_EQ(found("#include <only.h>", "-I nowhere -I" + here_ + "/b/../b/."), "b/only.h");
  EXPECT_EQ(found("#include <only.h>", "-I a"), "");
  EXPECT_EQ(found("#include \"" + here_ + "/a//./x.h\""), "a/x.h");
}

TEST_F(ClientFiles, headers_of_headers) {
  write("a/one.h", "#include \"deep/two.h\"\n"),
      write("a/deep/two.h", "#include \"../three.h\"\n#include <b.h>");
  write("a/three.h", "#include \"one.h\"\n"), write("b/b.h", "#include \"b.h\"\n");
  EXPECT_EQ(found("#include \"one.h\"", "-Ia -Ib"), "a/deep/two.h a/one.h a/three.h b/b.h");
  fs::create_symlink("a", "link");
  EXPECT_EQ(found("#include \"link/one.h\"", ""), "link/deep/two.h link/one.h link/three.h");
}

TEST_F(ClientFiles, names_by_macros) {
  write("a/x.h", "#define NEXT <y.h>\n"), write("a/y.h", "#include LAST"), write("a/z.h", "");
  const std::string strings = " -D S(x)=#x -D M(x)=S(x)";
  EXPECT_EQ(found("#include M(P/x.h)", "-D P=" + here_ + "/a" + strings), "a/x.h");
  EXPECT_EQ(found("#include M(P/x.h)\n#include NEXT\n#define LAST \"z.h\"", "-I a -D P=a" + strings),
            "a/x.h a/y.h a/z.h");
  EXPECT_EQ(found("#include N", "-I a -D N=\\\"x.h\\\""), "a/x.h");
}

TEST_F(ClientFiles, what_is_no_file_is_left_out) {
  fs::create_directory("folder.h");
  ASSERT_EQ(::mkfifo("pipe.h", 0600), 0);
  fs::create_symlink("nowhere", "dangling.h");
  fs::create_symlink("loop.h", "loop.h");
  write("x.h", "");
  const std::string zero = std::string("#include \"x.h") + '\0' + "\"\n";
  EXPECT_EQ(found("#include \"folder.h\"\n#include \"pipe.h\"\n#include \"dangling.h\"\n#include \"loop.h\"\n"
                  "#include \"\"\n#include \"/dev/zero\"\n#include \"" +
                  std::string(5000, 'x') + "\"\n" + zero),
            "");
}

TEST_F(ClientFiles, folders_that_paths_lead_through) {
  write("a/x.h", ""), fs::create_directories("b/c");
  const auto files = find_client_files({"#include \"b/c/../../a/x.h\""}, "-I b/../a");
  EXPECT_EQ(names(files), "a/x.h");
  EXPECT_EQ(files.folders, (std::vector<std::string>{here_ + "/b", here_ + "/b/c"}));
}

TEST_F(ClientFiles, full_paths_are_called_otherwise) {
  write("x.h", "#define Z 1\n");
  write("y.h", "#include \"" + here_ + "/x.h\"\n#include < " + here_ + "/x.h>\n#define P <" + here_ +
                   "/x.h>\n#include P\n#define ROOT /\n#define OTHER \"/etc\"\n");
  const std::string text = "#include \"" + here_ + "/y.h\" // " + here_ + "\n";
  const auto files = find_client_files({text}, "");
  EXPECT_EQ(files.files.at(here_ + "/y.h"),
            "#include \"outboard_files" + here_ + "/x.h\"\n#include < " + here_ +
                "/x.h>\n#define P <outboard_files" + here_ +
                "/x.h>\n#include P\n#define ROOT /\n#define OTHER \"/etc\"\n");
  EXPECT_EQ(text_for_compiler(text), "#include \"outboard_files" + here_ + "/y.h\" // " + here_ + "\n");
  EXPECT_EQ(text_for_compiler("#include \"x.h\"\nint a = 4 /2;"), "#include \"x.h\"\nint a = 4 /2;");
}

TEST_F(ClientFiles, options_for_the_compiler) {
  client_files files;
  files.here = "/home/u";
  files.full_names = {"/usr/share/k/x.h"};
  const auto options = [&](const std::string& given) {
    return options_for_compiler(given, files, "outboard_1");
  };
  const std::string above = "./../../../outboard_1/..", root = above + "/outboard_files";
  EXPECT_EQ(options(""), "-I " + above);
  EXPECT_EQ(options("-I inc -I/usr/a \"-I/b c\""),
            "-I " + above + " -I inc -I" + root + "/usr/a \"-I" + root + "/b c\"");
  EXPECT_EQ(options("-D P=/usr/share/k -D Q=/usr/share -D R=/usr/sh -D S=/ -DT=\"/usr/share/k/x.h\""),
            "-I " + above +
                " -D P=outboard_files/usr/share/k -D Q=outboard_files/usr/share -D R=/usr/sh -D S=/ "
                "-DT=\"outboard_files/usr/share/k/x.h\"");
  files.here = "/";
  EXPECT_EQ(options("-I/a"), "-I ./../outboard_1/.. -I./../outboard_1/../outboard_files/a");
}

TEST(client_files, what_the_compiler_says) {
  const std::string set = "outboard_0123456789abcdef0123456789abcdef";
  EXPECT_EQ(log_for_program("error: ./../../" + set + "/../outboard_files/a/x.h:1: wrong, in ../" + set +
                            "/../outboard_files/b\n"),
            "error: /a/x.h:1: wrong, in /b\n");
  EXPECT_EQ(log_for_program("'outboard_files/a.h' not found\n#include \"outboard_files/a.h\""),
            "'/a.h' not found\n#include \"/a.h\"");
  EXPECT_EQ(log_for_program("x/../outboard_files/a outboard_files"), "x/..//a outboard_files");
  EXPECT_EQ(log_for_program(""), "");
}

TEST_F(ClientFiles, too_many_are_a_problem_that_is_told) {
  std::string text;
  for (int i = 0; i < 4100; ++i) {
    write("h" + std::to_string(i), "");
    text += "#include \"h" + std::to_string(i) + "\"\n";
  }
  EXPECT_NE(find_client_files({text}, "").problem.find("more than 4096 files"), std::string::npos);
  write("large.h", "");
  fs::resize_file("large.h", (256u << 20) + 1);
  EXPECT_NE(find_client_files({"#include \"large.h\""}, "").problem.find("more than 256 MiB"),
            std::string::npos);
  write("small.h", " "), fs::resize_file("large.h", 256u << 20);
  EXPECT_NE(find_client_files({"#include \"small.h\"\n#include \"large.h\""}, "").problem, "");
  std::string names;
  for (int i = 0; i < 400; ++i)
    names += "#include A" + std::to_string(i % 7) + " B" + std::to_string(i) + "\n";
  for (int i = 0; i < 100; ++i) names += "#define A" + std::to_string(i % 7) + " " + std::to_string(i) + "\n";
  for (int i = 0; i < 400; ++i) names += "#define B" + std::to_string(i) + " A0 A1 A2\n";
  EXPECT_NE(find_client_files({names}, "").problem.find("meanings"), std::string::npos);
}

}  // namespace
}  // namespace outboard::frontend::opencl
