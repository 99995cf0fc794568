// outboard_coverage [nvml]: prints docs/coverage.md, or docs/coverage-nvml.md, from the tables.
#include <cstdio>
#include <cstring>
#include <string>

#include "api/cuda/coverage.hh"
#include "api/nvml/coverage.hh"

int main(int argc, char** argv) {
  const bool nvml = argc > 1 && std::strcmp(argv[1], "nvml") == 0;
  const std::string page = nvml ? outboard::api::nvml::coverage_page() : outboard::api::coverage_page();
  const bool written =
      std::fwrite(page.data(), 1, page.size(), stdout) == page.size() && std::fflush(stdout) == 0;
  if (!written) std::perror("outboard_coverage");
  return written ? 0 : 1;
}
