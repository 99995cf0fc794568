#include "base/schemes.hh"

#include <algorithm>

#include "base/check.hh"

namespace outboard {
namespace {

constexpr scheme_traits table[] = {
#define TRANSPORT(scheme, form, ...) {.name = #scheme, .address_form = form, __VA_ARGS__},
#include "base/schemes.def"
#undef TRANSPORT
};

constexpr scheme_traits unknown;

}  // namespace

std::span<const scheme_traits> schemes() { return table; }

const scheme_traits& traits_of(std::string_view url) {
  const auto* const found = std::ranges::find(table, url.substr(0, url.find(':')), &scheme_traits::name);
  return found == std::end(table) ? unknown : *found;
}

const scheme_traits& scheme_with(bool scheme_traits::*trait) {
  const auto* const found = std::ranges::find(table, true, trait);
  CHECK(found != std::end(table));
  return *found;
}

std::string url_forms(std::string_view before_last) {
  constexpr std::string_view comma = ", ";
  std::string text(all_url_forms);
  const std::size_t last = text.rfind(comma);
  return last == text.npos ? text : text.replace(last, comma.size(), before_last);
}

std::string_view address_of(std::string_view url) { return url.substr(url.find(':') + 1); }

}  // namespace outboard
