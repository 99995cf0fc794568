#include "api/nvml/functions.hh"

#include <algorithm>
#include <array>

#include "api/line_checks.hh"

namespace outboard::api::nvml {
namespace {

[[maybe_unused]] constexpr description later_description = parse(kind::later, "");
constexpr description refused_description = parse(kind::refused, "");

#define OUTBOARD_INFO_call(symbol) function<opcode::symbol>::about, function<opcode::symbol>::fixed
#define OUTBOARD_INFO_custom OUTBOARD_INFO_call
#define OUTBOARD_INFO_local OUTBOARD_INFO_call
#define OUTBOARD_INFO_later(symbol) later_description
#define OUTBOARD_INFO_refused(symbol) refused_description

// Every line with a prototype, against it.
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_CHECK_##how(symbol)
#define OUTBOARD_CHECK_call(symbol)                                                                          \
  struct check_##symbol {                                                                                    \
    static constexpr const description& about = function<opcode::symbol>::about;                             \
    using shape = detail::signature<function<opcode::symbol>::prototype>;                                    \
    static_assert(about.error == parse_error::none, #symbol ": the annotation does not follow the grammar"); \
    static_assert(about.arity == shape::arity, #symbol ": wrong number of parameters");                      \
    static_assert(about.how != kind::call || shape::directions(about),                                       \
                  #symbol ": out or inout on a value or a const pointer, or a count on a value");            \
    static_assert(about.how != kind::call || shape::counts(about), #symbol ": a count that is none");        \
  };
#include "api/nvml/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER

// In opcode order, because chapters stand in the order of their numbers.
constexpr function_info table[] = {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) \
  {opcode::symbol, #symbol, chapter_name(opcode::symbol), #__VA_ARGS__, OUTBOARD_INFO_##how(symbol)},
#include "api/nvml/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
};

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
  const auto* at = std::ranges::lower_bound(table, static_cast<opcode>(code), {}, &function_info::code);
  return at != std::end(table) && at->code == static_cast<opcode>(code) ? at : nullptr;
}

const function_info* find_function(std::string_view symbol) {
  static const by_name names;
  const auto at = std::ranges::lower_bound(names.order, symbol, {}, &function_info::name);
  return at != names.order.end() && (*at)->name == symbol ? *at : nullptr;
}

}  // namespace outboard::api::nvml
