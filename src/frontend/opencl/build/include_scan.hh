// What a text of OpenCL C may include, found without evaluating it: the lines that include, those that define
// macros, and what __has_include asks for, even where a condition excludes them. Takes time linear in the
// text. Pure function.
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
  std::string name;    ///< if computed: what follows #include
  std::size_t at = 0;  ///< where the name's first byte is in the text
};

/// #define, or -D in a build's options.
struct macro {
  std::string name;
  bool function = false;
  std::vector<std::string> parameters;
  std::string body;    ///< without comments
  std::size_t at = 0;  ///< where the body's first byte is in the text
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

/// Reads "NAME body" or "NAME(parameters) body", as it follows #define.
macro read_macro(std::string_view definition);

}  // namespace outboard::frontend::opencl
