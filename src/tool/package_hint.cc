#include "tool/package_hint.hh"

#include <algorithm>
#include <array>

namespace outboard::tool {
namespace {

struct hint {
  std::string_view program, text;
};

// As of Debian 12: what these packages depend on holds no driver, what nvidia-smi recommends does.
constexpr std::array hints{
    hint{"clinfo", "Debian and Ubuntu have it in the package clinfo"},
    hint{"nvidia-smi",
         "Debian has it without the driver in its section non-free: "
         "apt install --no-install-recommends nvidia-smi"},
    hint{"nvtop", "Debian has it in the package nvtop of its section contrib"},
};

}  // namespace

std::string_view package_hint(std::string_view program) {
  const auto* const at = std::ranges::find(hints, program, &hint::program);
  return at == hints.end() ? "" : at->text;
}

}  // namespace outboard::tool
