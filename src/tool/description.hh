// The command line as data: what `--help` says of each verb and flag. main() makes it of the parser; man
// pages, completions and a document are printed from it. Values; main thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hh"

namespace outboard::tool {

struct described_flag {
  std::vector<std::string> names;  ///< with their dashes
  std::string value;               ///< what stands for it: FILE, a|b; empty: it takes none
  std::string about;
};

struct described_verb {
  std::string name, about;
  std::vector<described_flag> flags;
  std::string operand;  ///< what stands behind them, as a flag's value; empty: nothing
  std::string details;  ///< of a verb: what it does, in Markdown
};

struct described_command {
  described_verb itself;  ///< with the flags that go without a verb
  std::string footer;     ///< of its help
  std::vector<described_verb> verbs;
};

/// A page for man(1), in the language of mdoc's older brother man(7): outboard(1), or outboard-VERB(1).
std::string manual_page(const described_command& c, const described_verb* verb);

/// A script for "bash", "zsh" or "fish"; empty: another shell.
std::string completion_script(const described_command& c, std::string_view shell);

/// All pages for man(1) and all completions, where programs look for them below this folder (usr/share).
status write_pages(const described_command& c, const std::string& folder);

/// docs/verbs.md.
std::string verbs_document(const described_command& c);

/// The table of verbs in docs/command.md.
std::string verbs_table(const described_command& c);

}  // namespace outboard::tool
