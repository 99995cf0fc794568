// outboard_coverage FOLDER: prints coverage.md, coverage-nvml.md and coverage-opencl.md in the folder anew
// from the tables. A page is left as it is if a function of it would get another opcode.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "api/cuda/coverage.hh"
#include "api/nvml/coverage.hh"
#include "api/opcodes.hh"
#include "api/opencl/coverage.hh"

namespace {

bool print_anew(const std::string& path, const std::string& page) {
  std::ifstream file(path);
  const std::string before{std::istreambuf_iterator<char>(file), {}};
  if (!file.good() && before.empty()) return std::fprintf(stderr, "cannot read %s\n", path.c_str()), false;
  const auto problems = outboard::api::changed_opcodes(before, page);
  for (const std::string& problem : problems) std::fprintf(stderr, "%s\n", problem.c_str());
  if (!problems.empty()) return false;
  std::ofstream out(path);
  out << page;
  return out.flush().good();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: outboard_coverage FOLDER\n"), 2;
  const std::string folder = std::string(argv[1]) + "/coverage";
  bool printed = print_anew(folder + ".md", outboard::api::coverage_page());
  printed = print_anew(folder + "-nvml.md", outboard::api::nvml::coverage_page()) && printed;
  printed = print_anew(folder + "-opencl.md", outboard::api::opencl::coverage_page()) && printed;
  return printed ? 0 : 1;
}
