#include "api/nvml/coverage.hh"

#include <array>

#include "api/nvml/functions.hh"

namespace outboard::api::nvml {
namespace {

struct family {
  std::string_view name, reason;
};

constexpr family families[] = {
    {"permission",
     "It changes a board that others use, too, or shows its secrets: NVML_ERROR_NO_PERMISSION, as a user "
     "without privileges gets it."},
    {"affinity",
     "It would bind threads of the client to processors near a board that is in another machine: "
     "NVML_ERROR_NOT_SUPPORTED."},
    {"tenants", "It tells about virtual machines of other tenants: NVML_ERROR_NOT_SUPPORTED."},
    {"root",
     "It shows error records of the whole machine, which the driver shows to root alone: "
     "NVML_ERROR_NO_PERMISSION."},
    {"cgroup",
     "It takes the path of a control group, and the boards' machine is not the one where the program has its "
     "own: NVML_ERROR_NOT_SUPPORTED."},
};

struct kind_row {
  kind how;
  std::string_view title, meaning;
};

constexpr kind_row rows[] = {
    {kind::call, "call", "travels to the server's helper and waits for its answer"},
    {kind::custom, "custom", "hand-written in the front-end, travels like a call"},
    {kind::local, "local", "answered by the front-end alone"},
    {kind::refused, "refused", "exported, with the answer below"},
};

int count(std::string_view chapter, kind how) {
  int n = 0;
  for (const function_info& f : functions()) {
    n += (chapter.empty() || f.chapter == chapter) && f.about.how == how;
  }
  return n;
}

void print_counts(std::string& out) {
  out += "| chapter";
  for (const kind_row& r : rows) out.append(" | ").append(r.title);
  out += " |\n|---|---|---|---|---|\n";
  const auto line = [&](std::string_view title, std::string_view chapter) {
    out.append("| ").append(title);
    for (const kind_row& r : rows) {
      const int n = count(chapter, r.how);
      out.append(" | ").append(n == 0 ? "" : std::to_string(n));
    }
    out += " |\n";
  };
  std::string_view current;
  for (const function_info& f : functions()) {
    if (f.chapter != current) line(current = f.chapter, f.chapter);
  }
  line("**all**", "");
}

std::string_view title_of(kind how) {
  for (const kind_row& r : rows) {
    if (r.how == how) return r.title;
  }
  return {};
}

}  // namespace

std::string_view refusal_reason(std::string_view name) {
  for (const family& f : families) {
    if (f.name == name) return f.reason;
  }
  return {};
}

std::string coverage_page() {
  std::string out =
      "# Coverage of NVML\n\n"
      "`outboard_coverage` prints this page from `src/api/nvml/*.def`, and a test compares. It lists every "
      "function of\n"
      "nvml.h (13.5), old versions too. [nvml.md](nvml.md) says what they mean here.\n\n";
  for (const kind_row& r : rows) out.append("- ").append(r.title).append(": ").append(r.meaning).append("\n");
  out += "\n";
  print_counts(out);
  out += "\n## Refused, and why\n\n";
  for (const family& refused : families) {
    out.append("- ").append(refused.reason).append("\n ");
    for (const function_info& f : functions()) {
      if (f.about.how == kind::refused && f.text == refused.name) out.append(" ").append(f.name);
    }
    out += "\n";
  }
  out += "\n## By chapter\n\nAn opcode travels, so a function keeps it.\n";
  std::string_view current;
  for (const function_info& f : functions()) {
    if (f.chapter != current)
      out.append("\n### ").append(f.chapter).append("\n\n| opcode | function | kind |\n|---|---|---|\n");
    current = f.chapter;
    out.append("| ").append(std::to_string(static_cast<std::uint32_t>(f.code))).append(" | ").append(f.name);
    out.append(" | ").append(title_of(f.about.how)).append(" |\n");
  }
  return out;
}

}  // namespace outboard::api::nvml
