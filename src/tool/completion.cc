// Completion for shells: verbs, flags, and values where they are words of ours or files.
#include <fmt/format.h>

#include "base/joined.hh"
#include "tool/description.hh"

namespace outboard::tool {
namespace {

bool is_path(const described_flag& flag) { return flag.value == "FILE" || flag.value == "FOLDER"; }

/// The words that a flag or verb takes, with blanks between; empty: it takes others, which are written large.
std::string words_of(const std::string& value) {
  if (value.empty() || (value.front() >= 'A' && value.front() <= 'Z')) return {};
  std::string words = value;
  for (char& letter : words) letter = letter == '|' ? ' ' : letter;
  return words;
}

std::string all_names(const described_verb& verb) {
  std::vector<std::string> names;
  for (const described_flag& flag : verb.flags)
    names.insert(names.end(), flag.names.begin(), flag.names.end());
  return joined(names, " ");
}

std::string verb_names(const described_command& c) {
  std::vector<std::string> names;
  for (const described_verb& verb : c.verbs) names.push_back(verb.name);
  return joined(names, " ");
}

/// For the value behind a flag: a line of a case for each verb.
std::string bash_values(const described_verb& verb) {
  std::string out;
  for (const described_flag& flag : verb.flags) {
    const std::string words = words_of(flag.value);
    if (flag.value.empty()) continue;
    out += fmt::format("    {},{}) ", verb.name, flag.names.back());
    out += is_path(flag)
               ? std::string("COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n")
               : fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$current\")); return ;;\n", words);
  }
  return out;
}

/// Of `run` the flags end where its program begins: from there on the program's own completion counts.
std::string bash(const described_command& c) {
  std::string values, names, with_value;
  for (const described_verb& verb : c.verbs) {
    values += bash_values(verb);
    names += fmt::format("    {}) COMPREPLY=($(compgen -W \"{} {}\" -- \"$current\")) ;;\n", verb.name,
                         words_of(verb.operand), all_names(verb));
    if (verb.name != "run") continue;
    for (const described_flag& flag : verb.flags) {
      if (!flag.value.empty())
        with_value += fmt::format("{}{}", with_value.empty() ? "" : "|", flag.names.back());
    }
  }
  return fmt::format(R"(# Completion of outboard for bash: source <(outboard completion bash)
_outboard() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} verb=${{COMP_WORDS[1]}} at
  COMPREPLY=()
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{} help version" -- "$current"))
    return
  fi
  if [ "$verb" = run ]; then
    for ((at = 2; at < COMP_CWORD; ++at)); do
      case ${{COMP_WORDS[at]}} in
        --) at=$((at + 1)); break ;;
        {}) at=$((at + 1)) ;;
        -*) ;;
        *) break ;;
      esac
    done
    if [ "$at" -lt "$COMP_CWORD" ] || {{ [ "$at" = "$COMP_CWORD" ] && [[ $current != -* ]]; }}; then
      if declare -F _command_offset >/dev/null; then
        _command_offset "$at"
      elif [ "$at" = "$COMP_CWORD" ]; then
        COMPREPLY=($(compgen -c -- "$current"))
      else
        COMPREPLY=($(compgen -f -- "$current"))
      fi
      return
    fi
  fi
  case "$verb,$before" in
{}  esac
  case "$verb" in
{}    help) COMPREPLY=($(compgen -W "{}" -- "$current")) ;;
  esac
}}
complete -o filenames -F _outboard outboard
)",
                     verb_names(c), with_value, values, names, verb_names(c));
}

/// In single quotes, for zsh and fish.
std::string in_quotes(std::string_view text) {
  std::string out;
  for (const char letter : text) out += letter == '\'' ? std::string("’") : std::string(1, letter);
  return out;
}

std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char letter : in_quotes(text)) {
    if (letter == '[' || letter == ']' || letter == ':') out += '\\';
    out += letter;
  }
  return out;
}

std::string zsh(const described_command& c) {
  std::string verbs, cases;
  for (const described_verb& verb : c.verbs) {
    verbs += fmt::format("    '{}:{}'\n", verb.name, zsh_text(verb.about));
    cases += fmt::format("    {})\n      _arguments", verb.name);
    for (const described_flag& flag : verb.flags) {
      const std::string words = words_of(flag.value);
      std::string value;
      if (is_path(flag)) value = ":file:_files";
      if (!flag.value.empty() && value.empty())
        value =
            words.empty() ? fmt::format(":{}: ", zsh_text(flag.value)) : fmt::format(":value:({})", words);
      for (const std::string& name : flag.names)
        cases += fmt::format(" \\\n        '{}[{}]{}'", name, zsh_text(flag.about), value);
    }
    if (verb.name == "run") cases += " \\\n        '*::program:_normal'";
    if (!verb.operand.empty()) cases += fmt::format(" \\\n        ':operand:({})'", words_of(verb.operand));
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef outboard
# Completion of outboard for zsh: outboard completion zsh > ~/.zfunc/_outboard
_outboard() {{
  local -a verbs
  verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  local verb=$words[2]
  shift words
  (( CURRENT-- ))
  case $verb in
{}  esac
}}
_outboard "$@"
)",
                     verbs, cases);
}

std::string fish(const described_command& c) {
  std::string out =
      "# Completion of outboard for fish: outboard completion fish > "
      "~/.config/fish/completions/outboard.fish\n"
      "complete -c outboard -f\n";
  for (const described_verb& verb : c.verbs) {
    out += fmt::format("complete -c outboard -n __fish_use_subcommand -a {} -d '{}'\n", verb.name,
                       in_quotes(verb.about));
    for (const described_flag& flag : verb.flags) {
      const std::string words = words_of(flag.value);
      out += fmt::format("complete -c outboard -n '__fish_seen_subcommand_from {}'", verb.name);
      for (const std::string& name : flag.names)
        out += name.starts_with("--") ? fmt::format(" -l {}", name.substr(2))
                                      : fmt::format(" -s {}", name.substr(1));
      if (!flag.value.empty()) out += is_path(flag) ? " -r -F" : " -x";
      if (!words.empty()) out += fmt::format(" -a '{}'", words);
      out += fmt::format(" -d '{}'\n", in_quotes(flag.about));
    }
  }
  for (const described_verb& verb : c.verbs) {
    if (!verb.operand.empty())
      out += fmt::format("complete -c outboard -n '__fish_seen_subcommand_from {}' -a '{}'\n", verb.name,
                         words_of(verb.operand));
  }
  return out +
         "complete -c outboard -n '__fish_seen_subcommand_from run' -x -a '(__fish_complete_subcommand "
         "--fcs-skip=2)'\n";
}

}  // namespace

std::string completion_script(const described_command& c, std::string_view shell) {
  if (shell == "bash") return bash(c);
  if (shell == "zsh") return zsh(c);
  return shell == "fish" ? fish(c) : "";
}

}  // namespace outboard::tool
