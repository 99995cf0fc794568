// Which files of this machine a build may read, found by what its texts and options name, and how texts and
// options name them where the compiler is. More files are found than the compiler will read, because no
// condition is evaluated, but never other ones: of the places where a compiler may look, the first file that
// it would find. Reads files; any thread.
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
  std::vector<std::string> folders;          ///< that paths lead through
  std::map<std::string, std::string> files;  ///< by full path: the text for the compiler
  std::set<std::string> full_names;          ///< that macros make, whether there are such files or not
  std::string problem;                       ///< why they cannot be sent; empty: they can
};

/// Of a program's text, and of the headers that the program gives along.
client_files find_client_files(const std::vector<std::string_view>& texts, const std::string& options);

/// A program's text with the full paths that it includes as the compiler finds them.
std::string text_for_compiler(const std::string& source);

/// The options for the compiler that finds the files as marshal/opencl/build_files.hh says.
std::string options_for_compiler(const std::string& options, const client_files& found,
                                 const std::string& set_name);

/// What the compiler says, with the program's own names of its files.
std::string log_for_program(std::string log);

}  // namespace outboard::frontend::opencl
