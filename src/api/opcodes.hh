// The opcodes in a page of functions (docs/coverage*.md): each has a row "| opcode | function | ...". They
// travel, so a function keeps its number, and the page that is in the repository is what new lines are
// compared with. For the program that prints the pages and for tests; any thread.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace outboard::api {

inline std::map<std::uint32_t, std::string> opcodes_in(std::string_view page) {
  std::map<std::uint32_t, std::string> found;
  while (!page.empty()) {
    std::string_view line = page.substr(0, page.find('\n'));
    page.remove_prefix(line.size() < page.size() ? line.size() + 1 : page.size());
    if (!line.starts_with("| ")) continue;
    line.remove_prefix(2);
    std::uint32_t code = 0;
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), code);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (problem == std::errc() && line.starts_with(" | "))
      found[code] = line.substr(3, line.find(' ', 3) - 3);
  }
  return found;
}

/// A sentence for each opcode of `before` that is not the same function in `now`.
inline std::vector<std::string> changed_opcodes(std::string_view before, std::string_view now) {
  const std::map<std::uint32_t, std::string> known = opcodes_in(now);
  std::vector<std::string> problems;
  for (const auto& [code, name] : opcodes_in(before)) {
    const auto at = known.find(code);
    if (at != known.end() && at->second == name) continue;
    problems.push_back("opcode " + std::to_string(code) + " was " + name + " and is " +
                       (at == known.end() ? "gone" : "now " + at->second) +
                       ": a new line stands at the end of its chapter");
  }
  return problems;
}

}  // namespace outboard::api
