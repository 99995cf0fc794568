// Checks that every function that the vendor's headers declare has a line, and every line a function. Clang
// reads the headers: its AST dump names each declaration. OUTBOARD_AUDIT=FOLDER looks at the headers of the
// toolkit in FOLDER instead of those of the build, and fails with the lines that a newer release needs.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/cuda/functions.hh"
#include "api/cuda/proc_address.hh"

namespace outboard::api {
namespace {

std::string content_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Functions and the names of their parameters.
using declarations = std::map<std::string, std::vector<std::string>>;

class audit : public testing::Test {
 protected:
  void SetUp() override {
    if (std::string(OUTBOARD_CLANG).empty())
      GTEST_SKIP() << "clang++ not found: the headers cannot be audited";
    if (const char* toolkit = std::getenv("OUTBOARD_AUDIT")) include = std::string(toolkit) + "/include";
    directory = testing::TempDir() + "outboard_audit_" + std::to_string(::getpid());
    for (const char* folder : {"/GL", "/EGL"}) std::filesystem::create_directories(directory + folder);
    // Defines the few foreign types that cudaGL.h, cudaEGL.h and cudaVDPAU.h use, so that no graphics headers
    // are needed.
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

  int version() const {
    const std::string text = content_of(include + "/cuda.h");
    std::smatch found;
    EXPECT_TRUE(std::regex_search(text, found, std::regex(R"(#define CUDA_VERSION (\d+))")));
    return found.empty() ? 0 : std::stoi(found[1]);
  }

  declarations declared() const {
    const std::string command = "'" OUTBOARD_CLANG
                                "' -std=c++20 -w -fsyntax-only -fno-color-diagnostics -I'" +
                                directory + "' -I'" OUTBOARD_SOURCE_DIR "' -isystem '" + include +
                                "' -Xclang -ast-dump '" + directory + "/audit.cc'";
    FILE* pipe = ::popen(command.c_str(), "r");
    EXPECT_NE(pipe, nullptr);
    declarations found;
    std::vector<std::string>* parameters = nullptr;
    std::string line;
    for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) {
      if (c != '\n') {
        line.push_back(static_cast<char>(c));
        continue;
      }
      if (line.find("ParmVarDecl ") != line.npos) {
        if (parameters) parameters->push_back(name_before(line, line.find(" '")));
      } else if (line.find("Decl ") != line.npos) {
        const std::size_t type = line.find(" 'CUresult (");
        const bool ours = line.find("FunctionDecl ") != line.npos && type != line.npos;
        parameters = ours ? &(found[name_before(line, type)] = {}) : nullptr;
      }
      line.clear();
    }
    EXPECT_EQ(::pclose(pipe), 0) << command;
    return found;
  }

  // |-FunctionDecl 0x55 <place> place cuInit 'CUresult (unsigned int)' extern
  static std::string name_before(const std::string& line, std::size_t type) {
    const std::size_t space = line.rfind(' ', type - 1);
    return line.substr(space + 1, type - space - 1);
  }

  /// The version of a symbol: types of the same name and variant in order of version belong to the symbols in
  /// order of form. 0: there are not as many of both.
  unsigned since(const std::string& symbol, const declarations& all) const {
    const symbol_parts parts = parts_of(symbol);
    const std::string text = content_of(include + "/cudaTypedefs.h");
    std::set<unsigned> versions;
    const std::regex type("\\* ?PFN_" + std::string(parts.name) + "_v([0-9]+)" + std::string(parts.variant) +
                          "\\)");
    for (std::sregex_iterator at(text.begin(), text.end(), type), end; at != end; ++at)
      versions.insert(static_cast<unsigned>(std::stoul((*at)[1])));
    std::set<std::string> forms;
    for (const auto& [name, parameters] : all) {
      const symbol_parts other = parts_of(name);
      if (other.name == parts.name && other.variant == parts.variant) forms.insert(name);
    }
    if (forms.size() != versions.size()) return 0;
    return *std::next(versions.begin(), std::distance(forms.begin(), forms.find(symbol)));
  }

  /// The line of a function that has none, but for its kind and its words.
  std::string line_for(const std::string& symbol, const declarations& all) const {
    std::string text = "KIND(" + symbol + ",";
    for (const std::string& name : all.at(symbol))
      text.append(name == all.at(symbol).front() ? " " : ", ").append(name);
    return text + "; since " + std::to_string(since(symbol, all)) + ")";
  }

  /// What a difference between the headers and the tables looks like, a line each.
  std::string differences(const declarations& all) const {
    std::string text;
    for (const auto& [name, parameters] : all) {
      if (!find_function(name))
        text.append("no line in src/api/cuda/*.def: ").append(line_for(name, all)).append("\n");
    }
    for (const function_info& f : functions()) {
      if (!all.contains(std::string(f.name)))
        text.append("has a line, but no header declares it: ").append(f.name).append("\n");
    }
    return text;
  }

  std::string directory, include = OUTBOARD_CUDA_INCLUDE;
};

TEST_F(audit, every_function_of_the_headers_has_a_line_and_every_line_a_function) {
  const declarations all = declared();
  EXPECT_GT(all.size(), 600u);
  const std::string found = differences(all);
  if (version() != described_version && !std::getenv("OUTBOARD_AUDIT")) {
    GTEST_SKIP() << "the toolkit is " << version() << ", the tables follow " << described_version << "\n"
                 << found;
  }
  EXPECT_EQ(found, "") << "the headers are of " << version() << ", the tables follow " << described_version;
}

TEST_F(audit, a_function_without_a_line_is_shown_as_one) {
  if (version() != described_version) GTEST_SKIP() << "other headers have other differences";
  declarations all = declared();
  EXPECT_EQ(line_for("cuMemcpyHtoDAsync_v2_ptsz", all),
            "KIND(cuMemcpyHtoDAsync_v2_ptsz, dstDevice, srcHost, ByteCount, hStream; since 7000)");
  all["cuNotYetKnown"] = {"a", "b"};
  all.erase("cuInit");
  EXPECT_EQ(differences(all),
            "no line in src/api/cuda/*.def: KIND(cuNotYetKnown, a, b; since 0)\n"
            "has a line, but no header declares it: cuInit\n");
}

}  // namespace
}  // namespace outboard::api
