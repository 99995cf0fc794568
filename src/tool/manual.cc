// Pages about the command: for man, and docs/verbs.md.
#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <span>

#include "base/configuration/settings.hh"
#include "base/joined.hh"
#include "base/version.hh"
#include "tool/description.hh"
#include "tool/verb_details.hh"

namespace outboard::tool {
namespace {

/// What roff would read as its own.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    if (c == '\n') out += "\\&";  // a dot or a quote at a line's begin would be a request
  }
  return out;
}

std::string options(std::span<const described_flag> flags) {
  std::string out = ".SH OPTIONS\n";
  for (const described_flag& flag : flags) {
    out += fmt::format(".TP\n\\fB{}\\fR", escaped(joined(flag.names, ", ")));
    if (!flag.value.empty()) out += fmt::format(" \\fI{}\\fR", escaped(flag.value));
    out += fmt::format("\n\\&{}\n", escaped(flag.about));
  }
  return out;
}

std::string variables() {
  std::string out = ".SH ENVIRONMENT\n";
  for (const setting& s : all_settings()) {
    if (!s.variable.empty())
      out += fmt::format(".TP\n\\fB{}\\fR\n\\&{} ({})\n", escaped(s.variable), escaped(s.meaning),
                         escaped(s.accepted));
  }
  return out;
}

std::string verbs(const described_command& c) {
  std::string out = ".SH VERBS\n";
  for (const described_verb& verb : c.verbs)
    out += fmt::format(".TP\n\\fBoutboard {}\\fR\n\\&{}\n", verb.name, escaped(verb.about));
  return out;
}

}  // namespace

std::string manual_page(const described_command& c, const described_verb* verb) {
  const described_verb& of = verb ? *verb : c.itself;
  const std::string name = verb ? c.itself.name + "-" + verb->name : c.itself.name;
  std::string title;
  for (const char letter : name) title += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  // Without a date: what is built twice is the same.
  std::string out = fmt::format(".TH {} 1 \"\" \"{}\" \"User Commands\"\n", escaped(title), escaped(product));
  out += fmt::format(".SH NAME\n{} \\- {}\n", escaped(name), escaped(of.about));
  const std::string rest = !verb ? "\\fIVERB\\fR [\\fIOPTION\\fR...]" : "[\\fIOPTION\\fR...]";
  const std::string operand = verb && verb->name == "run" ? " [\\-\\-] \\fICOMMAND\\fR [\\fIARGUMENT\\fR...]"
                              : of.operand.empty()        ? std::string()
                                                          : fmt::format(" \\fI{}\\fR", of.operand);
  out += fmt::format(".SH SYNOPSIS\n\\fB{}{}\\fR {}{}\n", c.itself.name, verb ? " " + verb->name : "", rest,
                     operand);
  if (verb) out += ".SH DESCRIPTION\n\\&" + escaped(details_without_links(verb->name)) + ".\n";
  if (!verb) out += verbs(c);
  out += options(of.flags);
  if (!verb) {
    out += fmt::format(".SH NOTES\n.nf\n\\&{}\n.fi\n", escaped(c.footer));
    out += variables();
    out +=
        ".SH FILES\n.TP\n\\fI/etc/outboard/outboard.toml\\fR\nsettings of the machine\n"
        ".TP\n\\fI~/.config/outboard/outboard.toml\\fR\nsettings of the user\n";
  }
  std::string others = verb ? "\\fBoutboard\\fR(1)" : "";
  for (const described_verb& each : c.verbs) {
    if (!verb) others += fmt::format("{}\\fBoutboard\\-{}\\fR(1)", others.empty() ? "" : ", ", each.name);
  }
  return out + ".SH SEE ALSO\n" + others + "\n";
}

status write_pages(const described_command& c, const std::string& folder) {
  std::vector<std::pair<std::filesystem::path, std::string>> files{
      {"man/man1/outboard.1", manual_page(c, nullptr)},
      {"bash-completion/completions/outboard", completion_script(c, "bash")},
      {"zsh/site-functions/_outboard", completion_script(c, "zsh")},
      {"fish/vendor_completions.d/outboard.fish", completion_script(c, "fish")}};
  for (const described_verb& verb : c.verbs)
    files.emplace_back("man/man1/outboard-" + verb.name + ".1", manual_page(c, &verb));
  for (const auto& [name, text] : files) {
    const std::filesystem::path path = folder / name;
    std::error_code problem;
    std::filesystem::create_directories(path.parent_path(), problem);
    std::ofstream file(path);
    if (!(file << text << std::flush)) return failure("cannot write " + path.string());
  }
  return {};
}

std::string verbs_document(const described_command& c) {
  std::string out =
      "# Verbs\n\n"
      "Every verb and flag. `outboard help --document` prints this page from what `--help` says.\n"
      "[command.md](command.md) says how they work, [settings.md](settings.md) what the settings mean.\n";
  for (const described_verb& verb : c.verbs) {
    out += fmt::format("\n## outboard {}{}\n\n{}\n\n| flag | value | does |\n|---|---|---|\n", verb.name,
                       verb.operand.empty() ? std::string() : " " + verb.operand, verb.about);
    for (const described_flag& flag : verb.flags) {
      std::string value;
      for (const char letter : flag.value)
        value += letter == '|' ? std::string(", ") : std::string(1, letter);
      out += fmt::format("| `{}` | {} | {} |\n", joined(flag.names, "`, `"), value, flag.about);
    }
  }
  return out;
}

std::string verbs_table(const described_command& c) {
  std::string out = "| verb | does |\n|---|---|\n";
  for (const described_verb& verb : c.verbs) {
    // Of several words one is chosen, and a bar would end the cell.
    const bool one_word = !verb.operand.empty() && verb.operand.find('|') == verb.operand.npos;
    out += fmt::format("| `{}{}` | {} |\n", verb.name, one_word ? " " + verb.operand : "", verb.details);
  }
  return out;
}

}  // namespace outboard::tool
