// What a build's options say of files and macros, and how they are rewritten for a compiler that finds the
// same files elsewhere. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "frontend/opencl/build/include_scan.hh"

namespace outboard::frontend::opencl {

struct build_option {
  enum class kind { folder, definition } what = kind::folder;
  std::string value;   ///< of -D: its text
  std::string path;    ///< of -I; of a -D whose value is a full path: that
  std::size_t at = 0;  ///< of the path's first byte in the options
};

/// -I and -D in their order, joined to what belongs to them or not. Compilers differ in whether quotes within
/// a -D are part of it: such an option comes twice, with and without them.
std::vector<build_option> read_options(std::string_view options);

/// The macro that a -D means.
macro macro_of(const build_option& definition);

/// Text that goes into another before its byte `at`.
struct insertion {
  std::size_t at = 0;
  std::string text;
};

/// Those at one place once.
std::string with_insertions(std::string_view text, std::vector<insertion> all);

}  // namespace outboard::frontend::opencl
