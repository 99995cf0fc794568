// outboard_coverage [nvml|opencl]: prints docs/coverage.md, docs/coverage-nvml.md or docs/coverage-opencl.md
// from the tables.
// outboard_coverage opcodes cuda|nvml|opencl FILE: appends the numbers that FILE (an opcodes.golden) does not
// have yet. It fails if one that FILE has means another function now: numbers travel, and never change.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <string_view>

#include "api/cuda/coverage.hh"
#include "api/cuda/functions.hh"
#include "api/nvml/coverage.hh"
#include "api/nvml/functions.hh"
#include "api/opencl/coverage.hh"
#include "api/opencl/functions.hh"

namespace {

using numbers = std::map<std::uint32_t, std::string>;

std::string page_of(std::string_view api) {
  if (api == "nvml") return outboard::api::nvml::coverage_page();
  if (api == "opencl") return outboard::api::opencl::coverage_page();
  return outboard::api::coverage_page();
}

numbers numbers_of(std::string_view api) {
  numbers all;
  const auto add = [&](const auto& functions) {
    for (const auto& f : functions) all.emplace(static_cast<std::uint32_t>(f.code), f.name);
  };
  if (api == "nvml") {
    add(outboard::api::nvml::functions());
  } else if (api == "opencl") {
    add(outboard::api::opencl::functions());
  } else {
    add(outboard::api::functions());
  }
  return all;
}

int append_numbers(std::string_view api, const char* path) {
  numbers missing = numbers_of(api);
  std::ifstream known(path);
  std::string line;
  while (std::getline(known, line)) {
    char* rest = nullptr;
    const auto code = static_cast<std::uint32_t>(std::strtoul(line.c_str(), &rest, 10));
    if (rest == line.c_str() || *rest != ' ') continue;  // a comment
    const auto found = missing.find(code);
    if (found == missing.end() || found->second != rest + 1) {
      std::fprintf(stderr, "%s: %s: the tables say %s; a line may be appended to its chapter, not moved\n",
                   path, line.c_str(),
                   found == missing.end() ? "that no function has it" : found->second.c_str());
      return 1;
    }
    missing.erase(found);
  }
  if (!known.eof()) return std::perror(path), 1;
  std::ofstream to(path, std::ios::app);
  for (const auto& [code, name] : missing) to << code << ' ' << name << '\n';
  return to.flush() ? 0 : (std::perror(path), 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "opcodes") return append_numbers(argv[2], argv[3]);
  const std::string page = page_of(argc > 1 ? argv[1] : "");
  const bool written =
      std::fwrite(page.data(), 1, page.size(), stdout) == page.size() && std::fflush(stdout) == 0;
  if (!written) std::perror("outboard_coverage");
  return written ? 0 : 1;
}
