#include "frontend/opencl/argument_size.hh"

#include <array>
#include <utility>

namespace outboard::frontend::opencl {
namespace {

constexpr std::array<std::pair<std::string_view, std::size_t>, 15> scalars{{
    {"char", 1},
    {"uchar", 1},
    {"unsigned char", 1},
    {"short", 2},
    {"ushort", 2},
    {"unsigned short", 2},
    {"half", 2},
    {"int", 4},
    {"uint", 4},
    {"unsigned int", 4},
    {"float", 4},
    {"long", 8},
    {"ulong", 8},
    {"unsigned long", 8},
    {"double", 8},
}};

}  // namespace

std::size_t size_of_type(std::string_view name) {
  std::size_t lanes = 1;
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits < name.size()) {
    const std::string_view count = name.substr(digits);
    lanes = count == "2" ? 2 : count == "3" || count == "4" ? 4 : count == "8" ? 8 : count == "16" ? 16 : 0;
    name = name.substr(0, digits);
  }
  for (const auto& [scalar, size] : scalars) {
    if (scalar == name) return size * lanes;
  }
  return 0;
}

}  // namespace outboard::frontend::opencl
