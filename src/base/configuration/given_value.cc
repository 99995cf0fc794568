#include "base/configuration/given_value.hh"

#include <array>
#include <charconv>
#include <string_view>

#include "base/configuration/config.hh"

namespace outboard {

std::optional<std::string> text_in(const given_value& value) {
  const auto* text = std::get_if<std::string>(&value.is);
  return text ? std::optional(*text) : std::nullopt;
}

/// Sizes are numbers, or texts with a unit.
std::optional<std::uint64_t> size_in(const given_value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.is))
    return *number < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(*number));
  const auto text = text_in(value);
  return text ? parse_size(*text) : std::nullopt;
}

std::optional<std::int64_t> number_in(const given_value& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value.is)) return *number;
  const auto text = text_in(value);
  if (!text || !value.untyped) return std::nullopt;
  std::int64_t number = 0;
  const char* end = text->data() + text->size();
  const auto [stopped, problem] = std::from_chars(text->data(), end, number);
  return problem == std::errc() && stopped == end ? std::optional(number) : std::nullopt;
}

std::optional<bool> flag_in(const given_value& value) {
  if (const auto* flag = std::get_if<bool>(&value.is)) return *flag;
  const auto text = text_in(value);
  if (!text || !value.untyped) return std::nullopt;
  const bool on = *text == "1" || *text == "true";
  return on || *text == "0" || *text == "false" ? std::optional(on) : std::nullopt;
}

/// One text or several; as one untyped text they stand between commas.
std::optional<std::vector<std::string>> texts_in(const given_value& value) {
  if (const auto* list = std::get_if<std::vector<std::string>>(&value.is)) return *list;
  const auto text = text_in(value);
  if (!text) return std::nullopt;
  std::vector<std::string> list;
  std::string_view rest = *text;
  while (value.untyped) {
    const std::size_t comma = rest.find(',');
    list.emplace_back(rest.substr(0, comma));
    if (comma == rest.npos) return list;
    rest.remove_prefix(comma + 1);
  }
  return std::vector<std::string>{*text};
}

/// In binary units where it is a whole number of them.
std::string exact_size_text(std::uint64_t size) {
  constexpr std::array<std::string_view, 5> units{"", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (size != 0 && size % 1024 == 0 && unit + 1 < units.size()) size /= 1024, ++unit;
  return std::to_string(size).append(units[unit]);
}

}  // namespace outboard
