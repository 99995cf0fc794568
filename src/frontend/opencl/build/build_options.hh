// What a build's options say about files and macros, and how they are rewritten for a compiler that finds the
// same files elsewhere. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/opencl/build/include_scan.hh"

namespace outboard::frontend::opencl {

struct build_option {
  enum class kind { folder, definition } what = kind::folder;
  std::string value;   ///< text of a -D
  std::string path;    ///< path of a -I, or of a -D whose value is a full path
  std::size_t at = 0;  ///< where the path's first byte is in the options
};

/// Reads -I and -D in order, with their values attached or separate. Compilers differ in whether quotes
/// within a -D are part of it, so such a definition is returned twice, with and without them.
std::vector<build_option> read_options(std::string_view options);

/// The macro that a -D defines.
macro macro_of(const build_option& definition);

/// Text to be inserted into another before its byte `at`.
struct insertion {
  std::size_t at = 0;
  std::string text;
};

/// Inserts equal texts at one place only once.
std::string with_insertions(std::string_view text, std::vector<insertion> all);

}  // namespace outboard::frontend::opencl
