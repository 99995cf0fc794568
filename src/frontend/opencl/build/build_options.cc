#include "frontend/opencl/build/build_options.hh"

#include <algorithm>

namespace outboard::frontend::opencl {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Where a word ends that begins at `at`: at a blank that is neither quoted nor escaped.
std::size_t end_of_word(std::string_view options, std::size_t at) {
  bool quoted = false;
  for (; at < options.size() && (quoted || !is_blank(options[at])); ++at) {
    if (options[at] == '"') quoted = !quoted;
    if (options[at] == '\\' && at + 1 < options.size()) ++at;
  }
  return at;
}

std::string without_quotes(std::string_view word) {
  std::string text;
  for (std::size_t at = 0; at < word.size(); ++at) {
    if (word[at] == '"') continue;
    if (word[at] == '\\' && at + 1 < word.size()) ++at;
    text += word[at];
  }
  return text;
}

/// The full path that begins at `at`, behind quotes and the like. Nothing: there is none.
build_option path_in(std::string_view options, std::size_t at, std::size_t end) {
  build_option found;
  while (at < end && std::string_view("\"'\\<").find(options[at]) != std::string_view::npos) ++at;
  if (at >= end || options[at] != '/') return found;
  found.at = at;
  found.path = options.substr(at, std::min(end, options.find_first_of("\"'\\>", at)) - at);
  return found;
}

void add_definition(std::string_view options, std::size_t at, std::size_t end,
                    std::vector<build_option>& to) {
  const std::string_view word = options.substr(at, end - at);
  const std::size_t equals = word.find('=');
  build_option found = equals == word.npos ? build_option{} : path_in(options, at + equals + 1, end);
  found.what = build_option::kind::definition;
  found.value = word;
  to.push_back(found);
  found.value = without_quotes(word);
  if (found.value != word) to.push_back(std::move(found));
}

void add_folder(std::string_view options, std::size_t at, std::size_t end, std::vector<build_option>& to) {
  while (at < end && options[at] == '"') ++at;
  std::string path = without_quotes(options.substr(at, end - at));
  if (!path.empty()) to.push_back({build_option::kind::folder, {}, std::move(path), at});
}

}  // namespace

std::vector<build_option> read_options(std::string_view options) {
  std::vector<build_option> found;
  for (std::size_t at = 0; at < options.size();) {
    if (is_blank(options[at])) {
      ++at;
      continue;
    }
    std::size_t end = end_of_word(options, at);
    std::size_t first = at;
    while (first < end && options[first] == '"') ++first;
    const std::string_view name = options.substr(first, 2);
    if (name == "-I" || name == "-D") {
      first += 2;
      if (first >= end) {
        while (first < options.size() && is_blank(options[first])) ++first;
        end = end_of_word(options, first);
      }
      name == "-I" ? add_folder(options, first, end, found) : add_definition(options, first, end, found);
    }
    at = end;
  }
  return found;
}

macro macro_of(const build_option& definition) {
  std::string text = definition.value;
  const std::size_t equals = text.find('=');
  if (equals == text.npos) return read_macro(text + " 1");
  text[equals] = ' ';
  return read_macro(text);
}

std::string with_insertions(std::string_view text, std::vector<insertion> all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const insertion& one, const insertion& other) { return one.at < other.at; });
  std::string made;
  std::size_t done = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i && all[i].at == all[i - 1].at) continue;
    made.append(text.substr(done, all[i].at - done)).append(all[i].text);
    done = all[i].at;
  }
  return made.append(text.substr(done));
}

}  // namespace outboard::frontend::opencl
