// PTX fundamental types and state spaces. Plain data, any thread.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

namespace outboard::ptx {

// clang-format off
enum class type : std::uint8_t {
  none, pred, b8, b16, b32, b64, b128, u8, u16, u32, u64, s8, s16, s32, s64, u16x2, s16x2, f16, f16x2, bf16, bf16x2,
  f32, f64,
};
inline constexpr std::string_view type_names[] = {
  "", "pred", "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64",
  "u16x2", "s16x2", "f16", "f16x2", "bf16", "bf16x2", "f32", "f64",
};
inline constexpr std::uint8_t type_sizes[] = {0, 1, 1, 2, 4, 8, 16, 1, 2, 4, 8, 1, 2, 4, 8, 4, 4, 2, 4, 2, 4,
                                             4, 8};
// clang-format on

enum class space : std::uint8_t { generic, reg, param, shared, local, global, constant };

inline std::uint32_t size_of(type t) { return type_sizes[static_cast<int>(t)]; }
inline std::string_view name_of(type t) { return type_names[static_cast<int>(t)]; }

/// type::none when the name is none.
inline type type_of(std::string_view name) {
  for (std::size_t n = 1; n < std::size(type_names); ++n) {
    if (type_names[n] == name) return static_cast<type>(n);
  }
  return type::none;
}

inline bool is_signed(type t) { return t >= type::s8 && t <= type::s64; }
inline bool is_unsigned(type t) { return t >= type::u8 && t <= type::u64; }
inline bool is_integer(type t) { return t >= type::u8 && t <= type::s64; }
inline bool is_bits(type t) { return t >= type::b8 && t <= type::b128; }
inline bool is_float(type t) { return t >= type::f16; }

}  // namespace outboard::ptx
