#include "api/cuda/functions.hh"

#include <algorithm>
#include <array>

#include "api/cuda/line_words.hh"

namespace outboard::api {
namespace {

// One description serves all lines of this kind: each would be a KB of zeros in every front-end process.
constexpr description refused_description = parse(kind::refused, "");

#define OUTBOARD_ABOUT_call(symbol) function<opcode::symbol>::about
#define OUTBOARD_ABOUT_post OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_custom OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_local OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_refused(symbol) refused_description

constexpr function_info line(opcode code, std::string_view name, std::string_view text,
                             const description& about) {
  return {code, name, chapter_name(code), text, about, since_of(text)};
}

// The table is in opcode order, because the chapters are listed in the order of their numbers.
constexpr function_info table[] = {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) \
  line(opcode::symbol, #symbol, #__VA_ARGS__, OUTBOARD_ABOUT_##how(symbol)),
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
};

// How every line travels, checked here once rather than in all files that include the tables.
constexpr bool is_generated(kind how) { return how == kind::call || how == kind::post; }

/// Is this a function in whose requests others can travel?
constexpr bool has_requests(std::string_view name) {
  for (const function_info& f : table) {
    if (f.name == name) return is_generated(f.about.how) || !f.about.travel.request.empty();
  }
  return false;
}
constexpr bool via_has_requests(const description& d) {
  for (const std::string_view name : d.travel.via) {
    if (!name.empty() && !has_requests(name)) return false;
  }
  return true;
}
constexpr bool parts_need_request(const description& d) {
  const travel& t = d.travel;
  return !t.request.empty() || (t.reply.empty() && !t.tail && !t.raw);
}
/// A per-thread twin travels as the function that it is a twin of.
constexpr bool is_twin(std::string_view name) { return name.ends_with("_ptsz") || name.ends_with("_ptds"); }
constexpr bool says_how(std::string_view name, const description& d) {
  if (d.how != kind::custom) return d.travel.says_nothing();
  return d.travel.says_nothing() == is_twin(name);
}

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...)                                                              \
  static_assert(says_how(#symbol, OUTBOARD_ABOUT_##how(symbol)),                                     \
                #symbol ": a CUSTOM line says request or via, a twin and every other line neither"); \
  static_assert(parts_need_request(OUTBOARD_ABOUT_##how(symbol)),                                    \
                #symbol ": reply, tail and raw are said of a request, and there is none");           \
  static_assert(via_has_requests(OUTBOARD_ABOUT_##how(symbol)),                                      \
                #symbol ": via a function that has no requests");                                    \
  static_assert(since_of(#__VA_ARGS__) != 0, #symbol ": the line does not say since which CUDA version");
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER

struct by_name {
  std::array<const function_info*, std::size(table)> order;
  by_name() {
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = &table[i];
    std::ranges::sort(order, {}, &function_info::name);
  }
};

}  // namespace

std::span<const function_info> functions() { return table; }

const function_info* find_function(std::uint32_t code) {
  const std::uint32_t chapter = code / 1000, position = code % 1000;
  if (chapter >= detail::chapter_places.size()) return nullptr;
  const detail::chapter_place& place = detail::chapter_places[chapter];
  return position < place.count ? &table[place.begin + position] : nullptr;
}

const function_info* find_function(std::string_view symbol) {
  static const by_name names;
  const auto at = std::ranges::lower_bound(names.order, symbol, {}, &function_info::name);
  return at != names.order.end() && (*at)->name == symbol ? *at : nullptr;
}

}  // namespace outboard::api
