#include "api/nvml/forms.hh"

#include <algorithm>

namespace outboard::api::nvml {
namespace {

template <class F>
struct parameters_of;
template <class R, class... A>
struct parameters_of<R(A...)> {
  static_assert(sizeof...(A) <= max_arguments);
  static constexpr std::array<parameter_form, sizeof...(A)> list{form_of<A>()...};
};

template <opcode Op>
constexpr function_form form() {
  using f = function<Op>;
  return {Op, &f::about, f::fixed, parameters_of<typename f::prototype>::list};
}

constexpr function_form table[] = {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_FORM_##how(symbol)
#define OUTBOARD_FORM_call(symbol) form<opcode::symbol>(),
#define OUTBOARD_FORM_custom OUTBOARD_FORM_call
#define OUTBOARD_FORM_local(symbol)
#define OUTBOARD_FORM_refused(symbol)
#include "api/nvml/expand.def"
#undef OUTBOARD_FORM_call
#undef OUTBOARD_FORM_custom
#undef OUTBOARD_FORM_local
#undef OUTBOARD_FORM_refused
#undef OUTBOARD_LINE
#undef CHAPTER
};

}  // namespace

const function_form* find_form(std::uint32_t code) {
  const auto* at = std::ranges::lower_bound(table, static_cast<opcode>(code), {}, &function_form::code);
  return at != std::end(table) && at->code == static_cast<opcode>(code) ? at : nullptr;
}

std::span<const function_form> forms() { return table; }

}  // namespace outboard::api::nvml
