#include "base/check.hh"
#include "base/sha256_blocks.hh"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace outboard {

#if defined(__x86_64__)

namespace {

bool ask_processor() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  // SSSE3 and SSE4.1, for the shuffles; then the SHA extensions.
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_SSSE3) == 0 || (c & bit_SSE4_1) == 0) return false;
  constexpr unsigned bit_sha = 1u << 29;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_sha) != 0;
}

/// Computes words 4n to 4n + 3 of the schedule from the sixteen before them.
__attribute__((target("sha,sse4.1,ssse3"))) inline __m128i next_words(__m128i w0, __m128i w1, __m128i w2,
                                                                      __m128i w3) {
  const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));
  return _mm_sha256msg2_epu32(sum, w3);
}

}  // namespace

bool sha256_has_instructions() {
  static const bool has = ask_processor();
  return has;
}

__attribute__((target("sha,sse4.1,ssse3"))) void sha256_blocks_by_instructions(sha256_state& state,
                                                                               const std::byte* data,
                                                                               std::size_t count) {
  const auto load = [](const void* from) __attribute__((target("sha,sse4.1,ssse3"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(from));
  };
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
  // The instructions want the state as {a, b, e, f} and {c, d, g, h}, highest word first.
  const __m128i badc = _mm_shuffle_epi32(load(state.data()), 0xb1);
  const __m128i efgh = _mm_shuffle_epi32(load(state.data() + 4), 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, efgh, 8);
  __m128i cdgh = _mm_blend_epi16(efgh, badc, 0xf0);
  for (; count > 0; --count, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 4; ++i) w[i] = _mm_shuffle_epi8(load(data + 16 * i), big_endian);
#pragma GCC unroll 16
    for (std::size_t four = 0; four < 16; ++four) {
      const __m128i words = w[four % 4];
      const __m128i keyed = _mm_add_epi32(words, load(sha256_round_constants.data() + 4 * four));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, keyed);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(keyed, 0x0e));
      if (four < 12) w[four % 4] = next_words(words, w[(four + 1) % 4], w[(four + 2) % 4], w[(four + 3) % 4]);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data()), _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(state.data() + 4), _mm_alignr_epi8(dchg, feba, 8));
}

#else

bool sha256_has_instructions() { return false; }
void sha256_blocks_by_instructions(sha256_state&, const std::byte*, std::size_t) { CHECK(false); }

#endif

}  // namespace outboard
