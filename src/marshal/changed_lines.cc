#include "marshal/changed_lines.hh"

#include <cstring>

#include "marshal/byte_masks.hh"
#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace outboard::marshal {
namespace {

std::uint64_t read_by_words(const std::byte* memory, const std::byte* shadow, std::byte* to) {
  std::memcpy(to, memory, change_line);
  return different_bytes(to, shadow, change_line);
}

std::size_t take_by_words(const std::byte* line, std::uint64_t mask, std::byte* to) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < change_line; at += word_size)
    n += take_bytes(line + at, static_cast<std::uint8_t>(mask >> at), to + n);
  return n;
}

void put_by_words(const std::byte* from, std::uint64_t mask, std::byte* line) {
  for (std::size_t at = 0; at < change_line; at += word_size) {
    const std::uint64_t word = put_bytes(from, static_cast<std::uint8_t>(mask >> at));
    std::memcpy(line + at, &word, sizeof word);
  }
}

void store_by_words(const std::byte* line, std::uint64_t mask, std::byte* to) {
  for (std::size_t at = 0; at < change_line; at += word_size) {
    const auto here = static_cast<std::uint8_t>(mask >> at);
    if (!here) continue;
    const std::uint64_t bits = bytes_of(here);
    const std::uint64_t word = (load_word(to + at) & ~bits) | (load_word(line + at) & bits);
    std::memcpy(to + at, &word, sizeof word);
  }
}

#ifdef __x86_64__
#define OUTBOARD_VBMI2 __attribute__((target("avx512f,avx512bw,avx512vbmi2,popcnt")))

OUTBOARD_VBMI2 std::uint64_t read_by_avx512(const std::byte* memory, const std::byte* shadow, std::byte* to) {
  const __m512i line = _mm512_loadu_si512(memory);
  _mm512_storeu_si512(to, line);
  return _mm512_cmpneq_epi8_mask(line, _mm512_loadu_si512(shadow));
}

OUTBOARD_VBMI2 std::size_t take_by_avx512(const std::byte* line, std::uint64_t mask, std::byte* to) {
  _mm512_storeu_si512(to, _mm512_maskz_compress_epi8(mask, _mm512_loadu_si512(line)));
  return static_cast<std::size_t>(__builtin_popcountll(mask));
}

OUTBOARD_VBMI2 void put_by_avx512(const std::byte* from, std::uint64_t mask, std::byte* line) {
  const auto n = static_cast<unsigned>(__builtin_popcountll(mask));
  const std::uint64_t there = n == change_line ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1;
  _mm512_storeu_si512(line, _mm512_maskz_expand_epi8(mask, _mm512_maskz_loadu_epi8(there, from)));
}

OUTBOARD_VBMI2 void store_by_avx512(const std::byte* line, std::uint64_t mask, std::byte* to) {
  _mm512_mask_storeu_epi8(to, mask, _mm512_loadu_si512(line));
}

constexpr line_work work_by_avx512{"avx512", read_by_avx512, take_by_avx512, put_by_avx512, store_by_avx512};
#endif

}  // namespace

const line_work work_by_words{"words", read_by_words, take_by_words, put_by_words, store_by_words};

const line_work& best_line_work() {
#ifdef __x86_64__
  static const bool has = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2");
  if (has) return work_by_avx512;
#endif
  return work_by_words;
}

}  // namespace outboard::marshal
