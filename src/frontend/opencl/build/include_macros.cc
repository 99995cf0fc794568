#include "frontend/opencl/build/include_macros.hh"

#include <algorithm>

namespace outboard::frontend::opencl {
namespace {

/// Of one name; of one line. What goes beyond is a program that builds its names by conditions without end,
/// and the compiler says which file it misses.
constexpr std::size_t most_definitions = 16, most_expansions = 64;
/// Names of files are shorter. Also a bound on the work.
constexpr std::size_t most_text = 8192, most_steps = 1024;

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool begins_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The next token of `text` from `at` on: a name, a number, a literal, blanks, or one character.
std::string_view token_at(std::string_view text, std::size_t at) {
  std::size_t end = at + 1;
  const char first = text[at];
  if (is_blank(first)) {
    while (end < text.size() && is_blank(text[end])) ++end;
  } else if (begins_name(first) || is_digit(first)) {
    while (end < text.size() &&
           (begins_name(text[end]) || is_digit(text[end]) || (is_digit(first) && text[end] == '.')))
      ++end;
  } else if (first == '"' || first == '\'') {
    while (end < text.size() && text[end] != first) end += text[end] == '\\' ? 2 : 1;
    end = std::min(end + 1, text.size());
  }
  return text.substr(at, end - at);
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// As #parameter makes it of its argument.
std::string as_string(std::string_view argument) {
  std::string made = "\"";
  argument = trimmed(argument);
  for (std::size_t at = 0; at < argument.size();) {
    const std::string_view token = token_at(argument, at);
    at += token.size();
    const bool literal = token[0] == '"' || token[0] == '\'';
    for (const char c : token) {
      if (literal && (c == '"' || c == '\\')) made += '\\';
      if (!is_blank(c) || literal) made += c;
    }
    if (is_blank(token[0])) made += ' ';
  }
  return made + '"';
}

}  // namespace

/// One way through the definitions: the first time that a name comes up its definition is chosen.
class macro_book::expansion {
 public:
  explicit expansion(const macro_book& book) : book_(book) {}

  /// False: it grew beyond what a name can be.
  bool run(std::string_view text, std::string& out) {
    steps_ = 0;
    chosen_.clear();
    return expand(text, out);
  }
  /// The next way. False: that was the last.
  bool turn() {
    while (!ways_.empty()) {
      if (++ways_.back().now < ways_.back().count) return true;
      ways_.pop_back();
    }
    return false;
  }

 private:
  struct way {
    std::size_t now = 0, count = 0;
  };

  /// The definition that this way takes; nullptr: it is no macro, or one that is being replaced.
  const macro* choose(std::string_view name) {
    const auto found = book_.all_.find(name);
    if (found == book_.all_.end() || std::find(open_.begin(), open_.end(), name) != open_.end())
      return nullptr;
    auto at = std::find(chosen_.begin(), chosen_.end(), name);
    const auto index = static_cast<std::size_t>(at - chosen_.begin());
    if (at == chosen_.end()) chosen_.push_back(found->first);
    if (index == ways_.size()) ways_.push_back({0, found->second.size()});
    return &found->second[ways_[index].now];
  }

  /// `at` behind the opening parenthesis; afterwards behind the closing one. False: there is none.
  static bool take_arguments(std::string_view text, std::size_t& at, std::vector<std::string_view>& to) {
    std::size_t first = at, depth = 0;
    while (at < text.size()) {
      const std::string_view token = token_at(text, at);
      if (token == "(") ++depth;
      if (depth == 0 && (token == "," || token == ")")) {
        to.push_back(trimmed(text.substr(first, at - first)));
        first = at + 1;
        if (token == ")") return ++at, true;
      } else if (token == ")") {
        --depth;
      }
      at += token.size();
    }
    return false;
  }

  bool substitute(const macro& m, const std::vector<std::string_view>& arguments, std::string& out) {
    bool pasted = false;
    const std::string_view body = m.body;
    for (std::size_t at = 0; at < body.size();) {
      std::string_view token = token_at(body, at);
      at += token.size();
      if (token == "#" && at < body.size() && body[at] == '#') {
        while (!out.empty() && is_blank(out.back())) out.pop_back();
        for (++at; at < body.size() && is_blank(body[at]);) ++at;
        pasted = true;
        continue;
      }
      const bool quoted = token == "#" && m.function && at < body.size();
      if (quoted) {
        while (at < body.size() && is_blank(body[at])) ++at;
        if (at == body.size()) break;
        token = token_at(body, at);
        at += token.size();
      }
      const auto named = std::find(m.parameters.begin(), m.parameters.end(), token);
      const auto index = static_cast<std::size_t>(named - m.parameters.begin());
      if (named == m.parameters.end() || index >= arguments.size()) {
        out.append(quoted ? "#" : "").append(token);
      } else if (quoted) {
        out += as_string(arguments[index]);
      } else if (pasted || trimmed(body.substr(at)).starts_with("##")) {
        out += arguments[index];
      } else if (!expand(arguments[index], out)) {
        return false;
      }
      pasted = false;
      if (out.size() > most_text) return false;
    }
    return true;
  }

  bool expand(std::string_view text, std::string& out) {
    for (std::size_t at = 0; at < text.size();) {
      if (++steps_ > most_steps || out.size() > most_text) return false;
      const std::string_view token = token_at(text, at);
      at += token.size();
      const macro* const m = begins_name(token[0]) ? choose(token) : nullptr;
      std::vector<std::string_view> arguments;
      std::size_t behind = at;
      while (m && behind < text.size() && is_blank(text[behind])) ++behind;
      if (!m || (m->function && (behind >= text.size() || text[behind] != '(' ||
                                 !take_arguments(text, ++behind, arguments)))) {
        out += token;
        continue;
      }
      if (m->function) at = behind;
      std::string replaced;
      if (!substitute(*m, arguments, replaced)) return false;
      open_.push_back(m->name);
      const bool whole = expand(replaced, out);
      open_.pop_back();
      if (!whole) return false;
    }
    return true;
  }

  const macro_book& book_;
  std::vector<way> ways_;                 // for each name in the order in which they come up
  std::vector<std::string_view> chosen_;  // those names
  std::vector<std::string_view> open_;    // being replaced
  std::size_t steps_ = 0;
};

bool macro_book::add(macro m) {
  if (m.name.empty()) return false;
  std::vector<macro>& known = all_[m.name];
  if (known.size() >= most_definitions || std::find(known.begin(), known.end(), m) != known.end())
    return false;
  known.push_back(std::move(m));
  return true;
}

std::vector<std::string> macro_book::expand(std::string_view text) const {
  std::vector<std::string> all;
  expansion one(*this);
  for (std::size_t tries = 0; tries < most_expansions; ++tries) {
    std::string expanded;
    if (one.run(text, expanded)) all.push_back(std::move(expanded));
    if (!one.turn()) break;
  }
  return all;
}

bool read_header_name(std::string_view expanded, include_line& to) {
  expanded = trimmed(expanded);
  const char first = expanded.empty() ? '\0' : expanded.front();
  if (first != '"' && first != '<') return false;
  const std::size_t end = expanded.find(first == '"' ? '"' : '>', 1);
  if (end != expanded.size() - 1) return false;
  to.form = first == '"' ? include_form::quoted : include_form::angled;
  to.name = expanded.substr(1, end - 1);
  return true;
}

}  // namespace outboard::frontend::opencl
