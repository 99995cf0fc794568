// outboard_coverage: prints docs/coverage.md from the tables.
#include <cstdio>
#include <string>

#include "api/cuda/coverage.hh"

int main() {
  const std::string page = outboard::api::coverage_page();
  const bool written =
      std::fwrite(page.data(), 1, page.size(), stdout) == page.size() && std::fflush(stdout) == 0;
  if (!written) std::perror("outboard_coverage");
  return written ? 0 : 1;
}
