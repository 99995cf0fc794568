// Which files of this machine a build may read, found from the names in its texts and options, and how texts
// and options name them where the compiler is. More files are found than the compiler will read, because
// conditions are not evaluated, but never wrong ones: of each place that a compiler may search, the first
// file that it would find. Reads files; any thread.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "marshal/opencl/build_files.hh"

namespace outboard::frontend::opencl {

struct client_files {
  std::string here;                          ///< the current folder
  std::vector<std::string> folders;          ///< folders that paths lead through
  std::map<std::string, std::string> files;  ///< by full path: the text for the compiler
  std::set<std::string> full_names;          ///< full paths that macros make, whether such files exist or not
  std::string problem;                       ///< why the files cannot be sent; empty: they can
};

/// Finds the files of a program's text and of the headers that the program passes with it.
client_files find_client_files(const std::vector<std::string_view>& texts, const std::string& options);

/// A program's text in which the full paths that it includes are replaced by those for the compiler.
std::string text_for_compiler(const std::string& source);

/// The options for the compiler, which finds the files as marshal/opencl/build_files.hh says.
std::string options_for_compiler(const std::string& options, const client_files& found,
                                 const std::string& set_name);

/// The compiler's messages, with the program's own names for its files.
std::string log_for_program(std::string log);

}  // namespace outboard::frontend::opencl
