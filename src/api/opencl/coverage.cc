#include "api/opencl/coverage.hh"

#include <array>
#include <utility>

#include "api/opencl/extensions.hh"
#include "api/opencl/functions.hh"

namespace outboard::api::opencl {
namespace {

constexpr std::array<std::pair<kind, std::string_view>, 4> meanings{{
    {kind::post, "travels without a reply"},
    {kind::call, "travels and waits for its answer"},
    {kind::custom,
     "travels by hand-written ends; of these only blocking reads, builds, images, binaries and questions to "
     "the device wait"},
    {kind::local, "answered by the front-end, or made of the others"},
}};

constexpr std::string_view name_of(kind how) {
  constexpr std::array<std::string_view, 4> names{"call", "post", "custom", "local"};
  return names[static_cast<std::size_t>(how)];
}

/// Of a function of the core nothing.
std::string_view extension_of(opcode code) {
  for (const extension_function& each : extension_functions()) {
    if (each.code == code) return each.extension;
  }
  return {};
}

}  // namespace

std::string coverage_page() {
  std::string out =
      "# Coverage of OpenCL\n\n"
      "`outboard_coverage` prints this page from `src/api/opencl/*.def`, and a test compares. It lists every "
      "function "
      "of cl.h\n(OpenCL 1.0 to 3.0), and the functions of extensions. [opencl.md](opencl.md) says how they "
      "work "
      "here.\n\n";
  for (const auto& [how, meaning] : meanings)
    out.append("- ").append(name_of(how)).append(": ").append(meaning).append("\n");
  out += "\n## By chapter\n\nAn opcode travels, so a function keeps it.\n";
  std::string_view current;
  for (const function_info& f : functions()) {
    if (f.chapter != current)
      out.append("\n### ").append(f.chapter).append("\n\n| opcode | function | kind |\n|---|---|---|\n");
    current = f.chapter;
    const std::string_view extension = extension_of(f.code);
    out.append("| ").append(std::to_string(static_cast<std::uint32_t>(f.code))).append(" | ").append(f.name);
    out.append(" | ").append(name_of(f.about.how));
    out.append(extension.empty() ? "" : ", of ").append(extension).append(" |\n");
  }
  return out;
}

}  // namespace outboard::api::opencl
