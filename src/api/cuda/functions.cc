#include "api/cuda/functions.hh"

#include <algorithm>
#include <array>

#include "api/cuda/work_calls.hh"
#include "api/line_checks.hh"

namespace outboard::api {
namespace {

// One description serves all lines of these kinds: 435 of them would be 400 KB of zeros in every front-end
// process.
[[maybe_unused]] constexpr description later_description = parse(kind::later, "");
constexpr description refused_description = parse(kind::refused, "");

#define OUTBOARD_ABOUT_call(symbol) function<opcode::symbol>::about
#define OUTBOARD_ABOUT_post OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_custom OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_via OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_local OUTBOARD_ABOUT_call
#define OUTBOARD_ABOUT_later(symbol) later_description
#define OUTBOARD_ABOUT_refused(symbol) refused_description

// Every line with a prototype, against it.
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_CHECK_##how(symbol)
#define OUTBOARD_CHECK_call(symbol) OUTBOARD_CHECK_FUNCTION(opcode, symbol)
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER

// In opcode order, because chapters stand in the order of their numbers.
constexpr function_info table[] = {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) \
  {opcode::symbol, #symbol, chapter_name(opcode::symbol), #__VA_ARGS__, OUTBOARD_ABOUT_##how(symbol)},
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
};

constexpr bool is_served(std::string_view name) {
  for (const function_info& f : table) {
    if (f.name == name) return api::is_served(f.about);
  }
  return false;
}

/// The server carries out requests under each opcode that the line names.
constexpr bool ways_lead_on(std::string_view via) {
  while (!via.empty()) {
    if (!is_served(detail::next_item(via, ' '))) return false;
  }
  return true;
}

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_WAYS_##how(symbol)
#define OUTBOARD_WAYS_call(symbol)
#define OUTBOARD_WAYS_post(symbol)
#define OUTBOARD_WAYS_custom(symbol)                               \
  static_assert(ways_lead_on(function<opcode::symbol>::about.via), \
                #symbol ": it goes via a function whose opcode the server does not know");
#define OUTBOARD_WAYS_via OUTBOARD_WAYS_custom
#define OUTBOARD_WAYS_local(symbol)
#define OUTBOARD_WAYS_later(symbol)
#define OUTBOARD_WAYS_refused(symbol)
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

/// Where the lines of a chapter begin in the table.
struct by_chapter {
  std::array<std::size_t, 64> begin{};
  by_chapter() {
    for (std::size_t i = std::size(table); i-- > 0;) {
      const auto chapter = static_cast<std::uint32_t>(table[i].code) / 1000;
      if (chapter < begin.size()) begin[chapter] = i;
    }
  }
};

}  // namespace

std::span<const function_info> functions() { return table; }

const function_info* find_function(std::uint32_t code) {
  // Codes of a chapter follow each other.
  static const by_chapter chapters;
  const std::uint32_t chapter = code / 1000;
  if (chapter < chapters.begin.size()) {
    const std::size_t at = chapters.begin[chapter] + code % 1000;
    if (at < std::size(table) && table[at].code == static_cast<opcode>(code)) return &table[at];
  }
  const auto* at = std::ranges::lower_bound(table, static_cast<opcode>(code), {}, &function_info::code);
  return at != std::end(table) && at->code == static_cast<opcode>(code) ? at : nullptr;
}

const description& about(opcode code) {
  static constexpr description nothing;
  const function_info* const known = find_function(static_cast<std::uint32_t>(code));
  return known ? known->about : nothing;
}

const function_info* find_function(std::string_view symbol) {
  static const by_name names;
  const auto at = std::ranges::lower_bound(names.order, symbol, {}, &function_info::name);
  return at != names.order.end() && (*at)->name == symbol ? *at : nullptr;
}

bool leaves_work(std::string_view name) {
  const function_info* const known = find_function(name);
  return known && known->about.work;
}

}  // namespace outboard::api
