// What a text of OpenCL C may include, found without evaluating it: lines that include, lines that define
// macros, and what __has_include asks for, also where a condition leaves them out. Time linear in the text.
// Pure function.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace outboard::frontend::opencl {

enum class include_form { quoted, angled, computed };

struct include_line {
  include_form form = include_form::quoted;
  bool next = false;   ///< #include_next
  std::string name;    ///< computed: what stands behind #include
  std::size_t at = 0;  ///< of the name's first byte in the text
};

/// #define, or -D of a build's options.
struct macro {
  std::string name;
  bool function = false;
  std::vector<std::string> parameters;
  std::string body;    ///< without comments
  std::size_t at = 0;  ///< of the body's first byte in the text
  bool operator==(const macro& other) const {
    return name == other.name && function == other.function && parameters == other.parameters &&
           body == other.body;
  }
};

struct include_scan {
  std::vector<include_line> includes;
  std::vector<macro> macros;
};

include_scan scan_includes(std::string_view text);

/// "NAME body" or "NAME(parameters) body" as it stands behind #define.
macro read_macro(std::string_view definition);

}  // namespace outboard::frontend::opencl
