// How a message of named fields travels: a struct names its fields once (OUTBOARD_FIELDS), and both ends walk
// them. Knows no API. Values; no thread rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "wire/cursor.hh"

namespace outboard::marshal {

namespace detail {

struct put_fields {
  wire::writer& w;
  template <class... T>
  void operator()(const T&... fields) {
    (one(fields), ...);
  }
  template <class T>
  void one(const T& field) {
    if constexpr (std::is_same_v<T, std::string>) {
      w.text(field);
    } else if constexpr (std::is_same_v<T, bool>) {
      w.put(field);
    } else if constexpr (requires { typename T::allocator_type; }) {
      w.put(static_cast<std::uint64_t>(field.size()));
      if constexpr (sizeof(field[0]) == 1) {
        w.bytes(std::as_bytes(std::span(field)));
      } else {
        for (const auto& item : field) one(item);
      }
    } else if constexpr (requires(T & inner, put_fields & visit) { inner.fields(visit); }) {
      const_cast<T&>(field).fields(*this);  // fields() only names them
    } else if constexpr (std::is_enum_v<T>) {
      w.put(static_cast<std::underlying_type_t<T>>(field));
    } else {
      w.put(field);
    }
  }
};

struct take_fields {
  wire::reader& r;
  template <class... T>
  void operator()(T&... fields) {
    (one(fields), ...);
  }
  template <class T>
  void one(T& field) {
    if constexpr (std::is_same_v<T, std::string>) {
      field = r.text(1 << 20);
    } else if constexpr (std::is_same_v<T, bool>) {
      field = r.flag();
    } else if constexpr (requires { typename T::allocator_type; }) {
      using item = typename T::value_type;
      const auto n = r.get<std::uint64_t>();
      if (n > r.rest().size()) return r.fail();  // each item takes at least a byte
      if constexpr (sizeof(item) == 1) {
        const auto raw = r.bytes(n);
        const auto* first = reinterpret_cast<const item*>(raw.data());
        field.assign(first, first + raw.size());
      } else {
        for (std::uint64_t i = 0; i < n && r.ok(); ++i) one(field.emplace_back());
      }
    } else if constexpr (requires(T & inner, take_fields & visit) { inner.fields(visit); }) {
      field.fields(*this);
    } else if constexpr (std::is_enum_v<T>) {
      field = static_cast<T>(r.get<std::underlying_type_t<T>>());
    } else {
      field = r.get<T>();
    }
  }
};

}  // namespace detail

template <class Body>
void put_body(wire::writer& w, const Body& body) {
  detail::put_fields put{w};
  const_cast<Body&>(body).fields(put);  // fields() only names them
}

/// Sticky: r.ok() says whether the body is whole.
template <class Body>
Body take_body(wire::reader& r) {
  Body body;
  detail::take_fields take{r};
  body.fields(take);
  return body;
}

#define OUTBOARD_FIELDS(...)  \
  template <class Visit>      \
  void fields(Visit& visit) { \
    visit(__VA_ARGS__);       \
  }

}  // namespace outboard::marshal
