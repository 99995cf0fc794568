#include "frontend/copying/bulk_copy.hh"

#include <algorithm>
#include <cstdint>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace outboard::frontend {
namespace {

#ifdef __x86_64__
constexpr std::size_t line = 64;

/// `to` at a line's beginning, whole lines.
__attribute__((target("avx2"))) void stream_lines(std::byte* to, const std::byte* from, std::size_t lines) {
  for (; lines > 0; --lines, to += line, from += line) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + line / 2));
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to), low);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(to + line / 2), high);
  }
  _mm_sfence();  // such stores are not ordered by a release that follows
}
#endif

}  // namespace

void copy_past_caches(void* to, const void* from, std::size_t size) {
#ifdef __x86_64__
  static const bool can = __builtin_cpu_supports("avx2");
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::size_t before = (line - reinterpret_cast<std::uintptr_t>(to) % line) % line;
  if (can && size >= before + line) {
    std::memcpy(out, in, before);
    const std::size_t lines = (size - before) / line, streamed = before + lines * line;
    stream_lines(out + before, in + before, lines);
    std::memcpy(out + streamed, in + streamed, size - streamed);
    return;
  }
#endif
  std::memcpy(to, from, size);
}

void copy_piece(void* to, const void* from, std::size_t size, std::uint64_t whole) {
  constexpr std::uint64_t beyond_caches = 32u << 20;
  if (whole >= beyond_caches) return copy_past_caches(to, from, size);
  std::memcpy(to, from, size);
}

}  // namespace outboard::frontend
