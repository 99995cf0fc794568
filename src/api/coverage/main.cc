// outboard_coverage [nvml|opencl]: prints docs/coverage.md, docs/coverage-nvml.md or docs/coverage-opencl.md
// from the tables.
#include <cstdio>
#include <string>
#include <string_view>

#include "api/cuda/coverage.hh"
#include "api/nvml/coverage.hh"
#include "api/opencl/coverage.hh"

namespace {

std::string page_of(std::string_view api) {
  if (api == "nvml") return outboard::api::nvml::coverage_page();
  if (api == "opencl") return outboard::api::opencl::coverage_page();
  return outboard::api::coverage_page();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string page = page_of(argc > 1 ? argv[1] : "");
  const bool written =
      std::fwrite(page.data(), 1, page.size(), stdout) == page.size() && std::fflush(stdout) == 0;
  if (!written) std::perror("outboard_coverage");
  return written ? 0 : 1;
}
