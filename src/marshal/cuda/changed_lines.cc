#include "marshal/cuda/changed_lines.hh"

#include <cstring>

#include "marshal/cuda/byte_masks.hh"
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

constexpr line_work work_by_words{"words", read_by_words, take_by_words, put_by_words, store_by_words};

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

#define OUTBOARD_BMI2 __attribute__((target("avx2,bmi2,popcnt")))

/// All ones in each byte whose bit is set.
OUTBOARD_BMI2 __m256i bytes_named(std::uint32_t mask) {
  const __m256i byte_of_mask =
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i bit = _mm256_set1_epi64x(static_cast<std::int64_t>(0x8040201008040201));
  const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(mask)), byte_of_mask);
  return _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
}

OUTBOARD_BMI2 std::uint64_t read_by_avx2(const std::byte* memory, const std::byte* shadow, std::byte* to) {
  std::uint64_t same = 0;
  for (std::size_t at = 0; at < change_line; at += sizeof(__m256i)) {
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(memory + at));
    const __m256i before = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(shadow + at));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + at), half);
    const int equal = _mm256_movemask_epi8(_mm256_cmpeq_epi8(half, before));
    same |= std::uint64_t{static_cast<std::uint32_t>(equal)} << at;
  }
  return ~same;
}

OUTBOARD_BMI2 std::size_t take_by_bmi2(const std::byte* line, std::uint64_t mask, std::byte* to) {
  std::size_t n = 0;
  for (std::size_t at = 0; at < change_line; at += word_size) {
    const auto here = static_cast<std::uint8_t>(mask >> at);
    const std::uint64_t word = _pext_u64(load_word(line + at), bytes_of(here));
    std::memcpy(to + n, &word, sizeof word);
    n += static_cast<std::size_t>(_mm_popcnt_u32(here));
  }
  return n;
}

OUTBOARD_BMI2 void store_by_avx2(const std::byte* line, std::uint64_t mask, std::byte* to) {
  for (std::size_t at = 0; at < change_line; at += sizeof(__m256i)) {
    auto* place = reinterpret_cast<__m256i*>(to + at);
    const __m256i named = bytes_named(static_cast<std::uint32_t>(mask >> at));
    const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(line + at));
    _mm256_storeu_si256(place, _mm256_blendv_epi8(_mm256_loadu_si256(place), half, named));
  }
}

constexpr line_work work_by_avx2{"avx2", read_by_avx2, take_by_bmi2, put_by_words, store_by_avx2};

constexpr line_work work_by_avx512{"avx512", read_by_avx512, take_by_avx512, put_by_avx512, store_by_avx512};
#endif

}  // namespace

std::vector<const line_work*> line_works() {
  std::vector<const line_work*> can{&work_by_words};
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2")) can.push_back(&work_by_avx2);
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2"))
    can.push_back(&work_by_avx512);
#endif
  return can;
}

const line_work& best_line_work() {
  static const line_work& best = *line_works().back();
  return best;
}

}  // namespace outboard::marshal
