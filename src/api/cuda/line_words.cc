#include "api/cuda/line_words.hh"

namespace outboard::api::detail {
namespace {

constexpr std::uint8_t words_of(const description& about) {
  std::uint8_t words = 0;
  const auto add = [&](bool said, line_word word) {
    if (said) words |= static_cast<std::uint8_t>(word);
  };
  add(about.passes_frees, line_word::passes_frees);
  add(about.sends_frees, line_word::sends_frees);
  add(about.asks != completion::none, line_word::asks);
  add(about.light, line_word::light);
  add(about.no_work, line_word::no_work);
  add(about.loads_code, line_word::loads_code);
  add(about.makes_graph, line_word::makes_graph);
  return words;
}

constexpr opcode codes[] = {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) opcode::symbol,
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
};

constexpr std::array<chapter_place, 64> find_chapters() {
  std::array<chapter_place, 64> places{};
  for (std::uint16_t i = 0; i < std::size(codes); ++i) {
    chapter_place& place = places.at(static_cast<std::uint32_t>(codes[i]) / 1000);
    if (place.count++ == 0) place.begin = i;
  }
  return places;
}

}  // namespace

constinit const std::array<chapter_place, 64> chapter_places = find_chapters();

constinit const std::uint8_t line_words[] = {
#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_WORDS_##how(symbol),
#define OUTBOARD_WORDS_refused(symbol) 0
#define OUTBOARD_WORDS_call(symbol) words_of(function<opcode::symbol>::about)
#define OUTBOARD_WORDS_post OUTBOARD_WORDS_call
#define OUTBOARD_WORDS_custom OUTBOARD_WORDS_call
#define OUTBOARD_WORDS_local OUTBOARD_WORDS_call
#include "api/cuda/expand.def"
#undef OUTBOARD_WORDS_refused
#undef OUTBOARD_WORDS_call
#undef OUTBOARD_WORDS_post
#undef OUTBOARD_WORDS_custom
#undef OUTBOARD_WORDS_local
#undef OUTBOARD_LINE
#undef CHAPTER
};

}  // namespace outboard::api::detail
