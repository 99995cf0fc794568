// Every function that the vendor's headers declare has a line, and no line is without a function. The headers
// are read by clang, not by us: its AST dump names each declaration.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>

#include "api/cuda/functions.hh"
#include "base/testing/places.hh"

namespace outboard::api {
namespace {

/// The toolkit release that the tables follow. Another one may know more or fewer functions.
constexpr int audited_version = 13000;

class audit : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(OUTBOARD_CLANG).empty())
      GTEST_SKIP() << "clang++ not found: the headers cannot be audited";
    if (CUDA_VERSION != audited_version) {
      GTEST_SKIP() << "the toolkit is " << CUDA_VERSION << ", the tables follow " << audited_version;
    }
    directory = testing::TempDir() + "outboard_audit_" + std::to_string(::getpid());
    for (const char* folder : {"/GL", "/EGL"}) std::filesystem::create_directories(directory + folder);
    // The few foreign types that cudaGL.h, cudaEGL.h and cudaVDPAU.h name, so that no graphics headers are
    // needed.
    write("/GL/gl.h", "typedef unsigned int GLuint;\ntypedef unsigned int GLenum;\n");
    write("/EGL/egl.h", "typedef int EGLint;\n");
    write("/EGL/eglext.h",
          "typedef void *EGLImageKHR;\ntypedef void *EGLStreamKHR;\ntypedef void *EGLSyncKHR;\n");
    write("/audit.cc",
          "#include \"api/cuda/headers.hh\"\n#include <cudaGL.h>\n#include <cudaEGL.h>\n"
          "typedef unsigned int VdpDevice, VdpVideoSurface, VdpOutputSurface;\n"
          "typedef int VdpGetProcAddress(VdpDevice, unsigned int, void **);\n#include <cudaVDPAU.h>\n");
  }
  void TearDown() override {
    if (!directory.empty()) std::filesystem::remove_all(directory);
  }

  void write(const std::string& name, const char* text) { std::ofstream(directory + name) << text; }

  std::set<std::string> declared() {
    const std::string command =
        "'" OUTBOARD_CLANG "' -std=c++20 -w -fsyntax-only -fno-color-diagnostics -I'" + directory + "' -I'" +
        in_checkout("src") + "' -isystem '" OUTBOARD_CUDA_INCLUDE "' -Xclang -ast-dump '" + directory +
        "/audit.cc'";
    FILE* pipe = ::popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    std::set<std::string> names;
    std::string line;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
      if (c != '\n') {
        line.push_back(static_cast<char>(c));
        continue;
      }
      if (std::string name = declared_name(line); !name.empty()) names.insert(name);
      line.clear();
    }
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return names;
  }

  // |-FunctionDecl 0x55 <place> place cuInit 'CUresult (unsigned int)' extern
  static std::string declared_name(const std::string& line) {
    const std::size_t type = line.find(" 'CUresult (");
    if (line.find("FunctionDecl ") == std::string::npos || type == std::string::npos) return {};
    const std::size_t space = line.rfind(' ', type - 1);
    return line.substr(space + 1, type - space - 1);
  }

  std::string directory;
};

TEST_F(audit, every_function_of_the_headers_has_a_line_and_every_line_a_function) {
  const std::set<std::string> names = declared();
  EXPECT_GT(names.size(), 600u);
  for (const std::string& name : names) {
    EXPECT_NE(find_function(name), nullptr) << name << " has no line in src/api/cuda/*.def";
  }
  for (const function_info& f : functions()) {
    EXPECT_TRUE(names.contains(std::string(f.name))) << f.name << " has a line, but no header declares it";
  }
}

}  // namespace
}  // namespace outboard::api
