// Which names a line may include if macros make the name of its file. A macro may have been defined more than
// once, under conditions that nobody evaluates here: each definition is tried. Values; one thread at a time.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/opencl/build/include_scan.hh"

namespace outboard::frontend::opencl {

class macro_book {
 public:
  /// Adds a definition. Returns false, and does nothing, if it is known already.
  bool add(macro m);

  /// All texts that `text` may become when its macros are replaced, each once; tries the known definitions in
  /// turn.
  std::vector<std::string> expand(std::string_view text) const;

 private:
  class expansion;
  std::map<std::string, std::vector<macro>, std::less<>> all_;
};

/// Reads "name" or <name>, alone in the result of a computed #include. Returns false if it is neither.
bool read_header_name(std::string_view expanded, include_line& to);

}  // namespace outboard::frontend::opencl
