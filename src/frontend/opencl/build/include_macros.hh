// Which names a line may include if it names its file by macros. A macro may have been defined more than
// once, under conditions that are not evaluated here, so each definition is tried. Values; one thread at a
// time.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/opencl/build/include_scan.hh"

namespace outboard::frontend::opencl {

class macro_book {
 public:
  /// Adds this definition, unless it is known already. True: it was new.
  bool add(macro m);

  /// What `text` may be once its macros are replaced, each once, the known definitions tried in turn.
  std::vector<std::string> expand(std::string_view text) const;

 private:
  class expansion;
  std::map<std::string, std::vector<macro>, std::less<>> all_;
};

/// "name" or <name>, alone in what a computed #include came to. False: it is neither.
bool read_header_name(std::string_view expanded, include_line& to);

}  // namespace outboard::frontend::opencl
