#include "api/opencl/coverage.hh"

#include <array>

#include "api/opencl/functions.hh"

namespace outboard::api::opencl {
namespace {

struct kind_of_line {
  kind how;
  std::string_view name, meaning;
};

constexpr std::array<kind_of_line, 5> kinds{{
    {kind::post, "post", "travels without a reply"},
    {kind::call, "call", "travels and waits for its answer"},
    {kind::custom, "custom",
     "travels by hand-written ends; of these only blocking reads, builds, images, binaries and questions to "
     "the device wait"},
    {kind::local, "local", "answered by the front-end, or made of the others"},
    {kind::later, "later",
     "**a gap**: not there yet. It answers CL_INVALID_OPERATION, and devices say that they cannot do it"},
}};

/// The functions that fit, in a sentence of their names.
template <class Fits>
std::string listed(Fits&& fits) {
  std::string names;
  for (const function_info& f : functions()) {
    if (fits(f)) names.append(" ").append(f.name);
  }
  return names;
}

}  // namespace

std::string coverage_page() {
  std::string out =
      "# Coverage of OpenCL\n\n"
      "Printed from `src/api/opencl/*.def` by `outboard_coverage opencl`; a test compares. Every function of "
      "cl.h\n"
      "(OpenCL 1.0 to 3.0) is listed, and those of extensions. How they work here is in "
      "[opencl.md](opencl.md).\n\n";
  for (const auto& [how, name, meaning] : kinds)
    out.append("- ").append(name).append(": ").append(meaning).append("\n");
  out += "\n## Gaps\n\n";
  const std::string gaps = listed([](const function_info& f) { return f.about.how == kind::later; });
  out.append(gaps.empty() ? "None." : gaps.substr(1)).append("\n\n## By chapter\n");
  std::string_view current;
  for (const function_info& first : functions()) {
    if (first.chapter == current) continue;
    current = first.chapter;
    out.append("\n### ").append(current).append("\n\n");
    for (const auto& [how, name, meaning] : kinds) {
      const std::string names = listed([&, kind_of = how](const function_info& f) {
        return f.chapter == current && f.about.how == kind_of;
      });
      if (!names.empty()) out.append("- ").append(name).append(":").append(names).append("\n");
    }
  }
  return out;
}

}  // namespace outboard::api::opencl
