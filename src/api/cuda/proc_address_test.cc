#include "api/cuda/proc_address.hh"

#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "api/cuda/functions.hh"
#include "base/testing/places.hh"

namespace outboard::api {
namespace {

constexpr int driver = 13000;  // the driver behind testdata/procaddress-580.txt

bool implemented(std::string_view symbol) {
  const function_info* f = find_function(symbol);
  return f != nullptr && f->about.how != kind::later && f->about.how != kind::refused;
}

/// One line of the recorded answers.
struct recorded {
  std::string name;
  int flags = 0;
  bool unknown = false;
  std::vector<std::pair<int, std::string>> steps;  ///< from this version on: this symbol
};

std::vector<recorded> read_recorded() {
  std::ifstream in(in_checkout("src/api/cuda/testdata/procaddress-580.txt"));
  std::vector<recorded> all;
  std::string line;
  while (std::getline(in, line)) {
    if (line.empty() || line.front() == '#') continue;
    std::istringstream words(line);
    recorded r;
    std::string flags, step;
    words >> r.name >> flags;
    while (words >> step) {
      if (step == "unknown") {
        r.unknown = true;
      } else {
        const std::size_t equals = step.find('=');
        r.steps.emplace_back(std::stoi(step.substr(0, equals)), step.substr(equals + 1));
      }
    }
    for (char flag : flags) all.push_back(r), all.back().flags = flag - '0';
  }
  return all;
}

std::string show(const proc_answer& a) {
  return std::string(a.symbol.empty() ? "NULL" : a.symbol) + " result " + std::to_string(a.result) +
         " status " + (a.status ? std::to_string(*a.status) : "-");
}

std::string expected_unknown() { return "NULL result 0 status 1"; }

/// What the driver said, corrected by what is not implemented here.
std::string expected(const recorded& r, int version) {
  const auto there = [](const auto& step) { return implemented(step.second); };
  if (r.unknown || std::none_of(r.steps.begin(), r.steps.end(), there)) return expected_unknown();
  const std::string* symbol = nullptr;
  for (const auto& [since, name] : r.steps) {
    if (since <= version) symbol = &name;
  }
  if (symbol == nullptr) return "NULL result 0 status 2";
  return implemented(*symbol) ? *symbol + " result 0 status 0" : expected_unknown();
}

TEST(proc_address, answers_as_the_recorded_driver) {
  const std::vector<recorded> all = read_recorded();
  ASSERT_GT(all.size(), 1400u);
  int implemented_answers = 0;
  for (const recorded& r : all) {
    std::set<int> versions{0, 1, 1999, 2000, 12999, driver};
    for (const auto& [since, symbol] : r.steps) versions.insert({since - 1, since, since + 1});
    for (int version : versions) {
      if (version > driver) continue;
      const proc_answer a = resolve(r.name, version, static_cast<std::uint64_t>(r.flags), driver);
      EXPECT_EQ(show(a), expected(r, version)) << r.name << " version " << version << " flags " << r.flags;
      implemented_answers += !a.symbol.empty();
    }
    const proc_answer above = resolve(r.name, 13010, static_cast<std::uint64_t>(r.flags), driver);
    EXPECT_EQ(show(above), "NULL result 1 status -") << r.name;
  }
  EXPECT_GT(implemented_answers, 1000);
}

// Every implemented symbol can be had by somebody: the recorded answers name it.
TEST(proc_address, every_implemented_symbol_is_reachable) {
  std::set<std::string> reachable;
  for (const recorded& r : read_recorded()) {
    for (const auto& [since, symbol] : r.steps) {
      reachable.emplace(resolve(r.name, since, static_cast<std::uint64_t>(r.flags), driver).symbol);
    }
  }
  for (const function_info& f : functions()) {
    if (implemented(f.name)) {
      EXPECT_TRUE(reachable.contains(std::string(f.name))) << f.name;
    }
  }
}

TEST(proc_address, odd_questions_as_seen_on_580) {
  EXPECT_EQ(show(resolve("", 0, 0, driver)), expected_unknown());
  EXPECT_EQ(show(resolve("", 13000, 0, driver)), expected_unknown());
  EXPECT_EQ(show(resolve("cuNope", 12000, 0, driver)), expected_unknown());
  EXPECT_EQ(show(resolve("cuNope", 13001, 0, driver)), "NULL result 1 status -");
  EXPECT_EQ(show(resolve("cuMemAlloc_v2", 13000, 0, driver)), expected_unknown()) << "names have no suffix";
  EXPECT_EQ(show(resolve("cuMemcpy_ptds", 13000, 2, driver)), expected_unknown());
  EXPECT_EQ(show(resolve("cuMemAlloc", 13001, 0, driver)), "NULL result 1 status -");
  EXPECT_EQ(show(resolve("cuMemAlloc", 13001, 0, 13010)), "cuMemAlloc_v2 result 0 status 0");
}

TEST(proc_address, a_negative_version_means_the_newest) {
  for (int version : {-1, -2, -13000, std::numeric_limits<int>::min()}) {
    EXPECT_EQ(show(resolve("cuMemAlloc", version, 0, driver)), "cuMemAlloc_v2 result 0 status 0") << version;
  }
}

TEST(proc_address, flags) {
  EXPECT_EQ(show(resolve("cuMemcpy", 12000, 0, driver)), "cuMemcpy result 0 status 0");
  EXPECT_EQ(show(resolve("cuMemcpy", 12000, 1, driver)), "cuMemcpy result 0 status 0");
  EXPECT_EQ(show(resolve("cuMemcpy", 12000, 2, driver)), "cuMemcpy_ptds result 0 status 0");
  EXPECT_EQ(show(resolve("cuMemcpy", 12000, 3, driver)), "cuMemcpy_ptds result 0 status 0");
  EXPECT_EQ(show(resolve("cuMemcpy", 6050, 2, driver)), "NULL result 0 status 2")
      << "never the legacy stream instead";
  for (std::uint64_t flags : {4ull, 5ull, 6ull, 8ull, 1ull << 32, ~0ull}) {
    EXPECT_EQ(show(resolve("cuMemcpy", 12000, flags, driver)), "NULL result 1 status -") << flags;
    EXPECT_EQ(show(resolve("cuNope", 12000, flags, driver)), "NULL result 1 status -") << flags;
  }
}

// The versions are derived from the toolkit, so re-derive them: of one name and variant the typedef names,
// sorted by version, belong to the symbols, sorted by suffix.
using row = std::tuple<std::string, std::string, int, std::string>;  // name, variant, version, symbol

/// A table of constants: a compiler takes half a minute for as many tuples.
constexpr struct {
  const char *name, *variant;
  int version;
  const char* symbol;
} lines[] = {
#define SINCE(name, suffix, variant, version) {#name, #variant, version, #name #suffix #variant},
#define SINCE_ELSEWHERE SINCE
#include "api/cuda/proc_versions.def"
#undef SINCE_ELSEWHERE
#undef SINCE
};

std::set<row> committed() {
  std::set<row> rows;
  for (const auto& line : lines) rows.emplace(line.name, line.variant, line.version, line.symbol);
  return rows;
}

std::set<row> derived() {
  std::map<std::pair<std::string, std::string>, std::set<int>> versions;
  const std::regex typedef_name(R"(\*\s*PFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?\))");
  for (const char* header : {"cudaTypedefs.h", "cudaProfilerTypedefs.h", "cudaGLTypedefs.h",
                             "cudaEGLTypedefs.h", "cudaVDPAUTypedefs.h"}) {
    std::ifstream file(std::string(OUTBOARD_CUDA_INCLUDE "/") + header);
    EXPECT_TRUE(file) << header;
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    for (std::sregex_iterator at(text.begin(), text.end(), typedef_name), end; at != end; ++at) {
      versions[{(*at)[1], (*at)[3]}].insert(std::stoi((*at)[2]));
    }
  }
  versions.erase({"cuWGLGetDevice", ""});  // Windows only

  std::map<std::pair<std::string, std::string>, std::map<int, std::string>> symbols;
  const std::regex symbol_name(R"((\w+?)(?:_v(\d+))?(_ptds|_ptsz)?)");
  for (const function_info& f : functions()) {
    std::smatch m;
    const std::string name(f.name);
    EXPECT_TRUE(std::regex_match(name, m, symbol_name));
    symbols[{m[1], m[3]}][m[2].matched ? std::stoi(m[2]) : 1] = name;
  }

  std::set<row> rows;
  EXPECT_EQ(symbols.size(), versions.size());
  for (const auto& [key, forms] : symbols) {
    const std::set<int>& since = versions[key];
    EXPECT_EQ(forms.size(), since.size()) << key.first << key.second;
    auto version = since.begin();
    for (auto form = forms.begin(); form != forms.end() && version != since.end(); ++form, ++version) {
      rows.emplace(key.first, key.second, *version, form->second);
    }
  }
  return rows;
}

TEST(proc_address, versions_follow_from_the_typedef_headers) {
  const std::set<row> here = committed(), toolkit = derived();
  for (const row& r : toolkit)
    EXPECT_TRUE(here.contains(r)) << "missing: " << std::get<3>(r) << ' ' << std::get<2>(r);
  for (const row& r : here)
    EXPECT_TRUE(toolkit.contains(r)) << "stray: " << std::get<3>(r) << ' ' << std::get<2>(r);
}

// The typedef of that version is the prototype of that symbol.
TEST(proc_address, versions_name_the_prototypes_of_their_symbols) {
#define TYPEDEF(name, version, variant) PFN_##name##_v##version##variant
#define SINCE(name, suffix, variant, version)                                                        \
  EXPECT_TRUE((std::is_same_v<TYPEDEF(name, version, variant), decltype(&::name##suffix##variant)>)) \
      << #name #suffix #variant;
#define SINCE_ELSEWHERE(name, suffix, variant, version)
#include "api/cuda/proc_versions.def"
#undef SINCE_ELSEWHERE
#undef SINCE
#undef TYPEDEF
}

}  // namespace
}  // namespace outboard::api
