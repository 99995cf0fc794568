#include "frontend/opencl/build/include_scan.hh"

namespace outboard::frontend::opencl {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\f' || c == '\v' || c == '\r'; }
bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool in_name(char c) { return begins_name(c) || (c >= '0' && c <= '9'); }

/// The text as it is after lines that end with a backslash have been put together.
class cursor {
 public:
  explicit cursor(std::string_view text) : text_(text) { skip_splices(); }

  bool done() const { return at_ >= text_.size(); }
  std::size_t at() const { return at_; }
  /// 0: the end, as a zero byte in the text is nothing that a directive has.
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool at_end_of_line() const { return done() || text_[at_] == '\n'; }
  char take() {
    const char c = peek();
    if (!done()) ++at_, skip_splices();
    return c;
  }
  bool take_if(char c) {
    if (done() || peek() != c) return false;
    take();
    return true;
  }
  /// Two characters, or none.
  bool take_if(char first, char second) {
    if (peek() != first || done()) return false;
    cursor ahead = *this;
    ahead.take();
    if (ahead.done() || ahead.peek() != second) return false;
    ahead.take();
    *this = ahead;
    return true;
  }

 private:
  /// Compilers allow blanks between the backslash and the end of its line.
  void skip_splices() {
    while (at_ < text_.size() && text_[at_] == '\\') {
      std::size_t end = at_ + 1;
      while (end < text_.size() && is_blank(text_[end])) ++end;
      if (end >= text_.size() || text_[end] != '\n') return;
      at_ = end + 1;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// True: there was one, and a blank stands for it.
bool skip_comment(cursor& c) {
  if (c.take_if('/', '/')) {
    while (!c.at_end_of_line()) c.take();
    return true;
  }
  if (!c.take_if('/', '*')) return false;
  while (!c.done() && !c.take_if('*', '/')) c.take();
  return true;
}

void skip_blanks(cursor& c, bool lines) {
  while (!c.done()) {
    if (is_blank(c.peek()) || (lines && c.peek() == '\n')) {
      c.take();
    } else if (!skip_comment(c)) {
      return;
    }
  }
}

/// A string or a character, or what looks like one up to the end of its line.
void take_literal(cursor& c, std::string* to) {
  const char quote = c.take();
  if (to) *to += quote;
  while (!c.at_end_of_line()) {
    const char now = c.take();
    if (to) *to += now;
    if (now == quote) return;
    if (now == '\\' && !c.at_end_of_line()) {
      const char escaped = c.take();
      if (to) *to += escaped;
    }
  }
}

/// To the end of the line, with a blank for each comment.
void take_line(cursor& c, std::string* to) {
  while (!c.at_end_of_line()) {
    if (c.peek() == '"' || c.peek() == '\'') {
      take_literal(c, to);
    } else if (skip_comment(c)) {
      if (to) *to += ' ';
    } else {
      const char now = c.take();
      if (to) *to += now;
    }
  }
  c.take();
}

void trim(std::string& text) {
  while (!text.empty() && is_blank(text.back())) text.pop_back();
}

std::string take_name(cursor& c) {
  std::string name;
  if (begins_name(c.peek())) {
    while (!c.done() && in_name(c.peek())) name += c.take();
  }
  return name;
}

/// "name" or <name>. False: it is neither; nothing was taken.
bool take_header_name(cursor& c, include_line& to) {
  const char end = c.peek() == '"' ? '"' : c.peek() == '<' ? '>' : '\0';
  if (!end) return false;
  cursor ahead = c;
  ahead.take();
  to.at = ahead.at();
  to.form = end == '"' ? include_form::quoted : include_form::angled;
  while (!ahead.at_end_of_line() && ahead.peek() != end) to.name += ahead.take();
  const bool whole = !ahead.at_end_of_line();
  if (whole) ahead.take();
  c = ahead;  // what has no end is no name, and not looked at again
  return whole;
}

void read_include(cursor& c, bool next, include_scan& to) {
  skip_blanks(c, false);
  include_line line;
  line.next = next;
  line.at = c.at();
  if (begins_name(c.peek())) {
    line.form = include_form::computed;
    take_line(c, &line.name);
    trim(line.name);
    to.includes.push_back(std::move(line));
    return;
  }
  if (take_header_name(c, line)) to.includes.push_back(std::move(line));
  take_line(c, nullptr);
}

macro take_macro(cursor& c) {
  macro m;
  skip_blanks(c, false);
  m.name = take_name(c);
  if (c.take_if('(')) {
    m.function = true;
    std::string parameter;
    while (!c.at_end_of_line() && c.peek() != ')') {
      if (skip_comment(c)) continue;
      const char now = c.take();
      if (now == ',') {
        m.parameters.push_back(std::move(parameter)), parameter.clear();
      } else if (!is_blank(now)) {
        parameter += now;
      }
    }
    if (!parameter.empty()) m.parameters.push_back(std::move(parameter));
    c.take_if(')');
  }
  skip_blanks(c, false);
  m.at = c.at();
  take_line(c, &m.body);
  trim(m.body);
  return m;
}

void read_condition(cursor& c, include_scan& to) {
  while (!c.at_end_of_line()) {
    if (c.peek() == '"' || c.peek() == '\'') {
      take_literal(c, nullptr);
    } else if (begins_name(c.peek())) {
      const std::string name = take_name(c);
      if (name != "__has_include" && name != "__has_include_next") continue;
      skip_blanks(c, false);
      if (!c.take_if('(')) continue;
      skip_blanks(c, false);
      include_line line;
      line.next = name != "__has_include";
      if (take_header_name(c, line)) to.includes.push_back(std::move(line));
    } else if (!skip_comment(c)) {
      c.take();
    }
  }
  c.take();
}

}  // namespace

include_scan scan_includes(std::string_view text) {
  include_scan found;
  cursor c(text);
  if (text.starts_with("\xef\xbb\xbf")) c.take(), c.take(), c.take();  // a byte order mark
  while (!c.done()) {
    skip_blanks(c, true);
    if (!c.take_if('#') && !c.take_if('%', ':')) {
      take_line(c, nullptr);
      continue;
    }
    skip_blanks(c, false);
    const std::string word = take_name(c);
    if (word == "include" || word == "include_next" || word == "import") {
      read_include(c, word == "include_next", found);
    } else if (word == "define") {
      found.macros.push_back(take_macro(c));
    } else if (word == "if" || word == "elif") {
      read_condition(c, found);
    } else {
      take_line(c, nullptr);
    }
  }
  return found;
}

macro read_macro(std::string_view definition) {
  cursor c(definition);
  return take_macro(c);
}

}  // namespace outboard::frontend::opencl
