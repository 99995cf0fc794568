// How one parameter of a generated function travels. Both ends are expanded from the same description, so
// they cannot disagree; the decoding end trusts nothing: every count is checked against a limit before memory
// is taken for it. Templates over the vendor's prototypes; no state.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <type_traits>

#include "api/describe.hh"
#include "api/handles.hh"
#include "wire/cursor.hh"
#include "wire/frame.hh"

namespace outboard::marshal {

/// Most elements in one array of a generated function. Real calls carry a handful; bulk data travels by other
/// requests.
inline constexpr std::uint64_t max_elements = 1 << 16;

template <class T>
using pointee = std::remove_cv_t<std::remove_pointer_t<T>>;

/// A pointer parameter is any pointer that is not a handle.
template <class T>
concept pointer_parameter = std::is_pointer_v<T> && !api::handle_type<std::remove_cv_t<T>>;

/// void is read and written as bytes.
template <class T>
using element_of = std::conditional_t<std::is_void_v<pointee<T>>, std::byte, pointee<T>>;

/// With `Wide`, integers take 64 bits (api::integers_travel_wide).
template <bool Wide, class T>
void put_value(wire::writer& w, const T& value) {
  if constexpr (api::handle_type<T>) {
    w.put(reinterpret_cast<std::uint64_t>(value));
  } else if constexpr (std::is_enum_v<T>) {
    w.put(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (Wide && std::is_integral_v<T>) {
    w.put(static_cast<std::uint64_t>(value));
  } else {
    w.put(value);
  }
}

/// A value that does not fit the type on this end is a misfit.
template <bool Wide, class T>
T get_value(wire::reader& r) {
  if constexpr (api::handle_type<T>) {
    return reinterpret_cast<T>(r.get<std::uint64_t>());
  } else if constexpr (std::is_enum_v<T>) {
    return static_cast<T>(r.get<std::underlying_type_t<T>>());
  } else if constexpr (Wide && std::is_integral_v<T>) {
    const auto whole = r.get<std::uint64_t>();
    const auto value = static_cast<T>(whole);
    if (static_cast<std::uint64_t>(value) != whole) r.fail();
    return value;
  } else {
    return r.get<T>();
  }
}

/// Reads the integer in a parameter as a count for another one: its value, or the value behind a pointer to
/// an integer.
template <class T>
std::uint64_t counting_value(const T& argument) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::uint64_t>(argument);
  } else if constexpr (pointer_parameter<T>) {
    if constexpr (std::is_integral_v<pointee<T>>) return argument ? static_cast<std::uint64_t>(*argument) : 0;
  }
  return 0;
}

template <std::size_t N>
std::uint64_t elements(const api::parameter& p, const std::array<std::uint64_t, N>& counts) {
  switch (p.count) {
    case api::count_kind::one:
      return 1;
    case api::count_kind::number:
      return p.number;
    case api::count_kind::parameter:
      return counts[p.count_index];
    case api::count_kind::string:
      return 0;
  }
  return 0;
}

inline bool travels_in(const api::parameter& p) { return p.dir != api::direction::out; }
inline bool travels_out(const api::parameter& p) {
  return p.dir == api::direction::out || p.dir == api::direction::inout;
}

}  // namespace outboard::marshal
