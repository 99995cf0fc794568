// How a message of named fields travels: a struct names its fields once (OUTBOARD_FIELDS), and both ends walk
// them. Knows no API. Values; no thread rules.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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
    } else if constexpr (requires { field.put(w); }) {  // views.hh
      field.put(w);
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
    } else if constexpr (requires { field.take(r); }) {  // views.hh
      field.take(r);
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

/// The payload of a frame that carries this body alone.
template <class Body>
std::vector<std::byte> payload_of(const Body& body) {
  std::vector<std::byte> out;
  wire::writer w(out);
  put_body(w, body);
  return out;
}

/// Errors are sticky: r.ok() says whether the body is complete.
template <class Body>
Body take_body(wire::reader& r) {
  Body body;
  detail::take_fields take{r};
  body.fields(take);
  return body;
}

/// The name of a struct as a template argument.
struct message_name {
  char text[40]{};
  constexpr explicit message_name(std::string_view name) {  // a longer name is not a constant expression
    for (std::size_t i = 0; i < name.size(); ++i) text[i] = name[i];
  }
};

/// message<message_name("pool_body")>::type is pool_body: so a line of a table, which is text, can name a
/// struct. Every struct that a line names is followed by OUTBOARD_MESSAGE.
template <message_name Name>
struct message;
#define OUTBOARD_MESSAGE(name)          \
  template <>                           \
  struct message<message_name(#name)> { \
    using type = name;                  \
  };

/// A message without fields.
struct nothing {
  template <class Visit>
  void fields(Visit&) {}
};
OUTBOARD_MESSAGE(nothing)

#define OUTBOARD_FIELDS(...)  \
  template <class Visit>      \
  void fields(Visit& visit) { \
    visit(__VA_ARGS__);       \
  }

}  // namespace outboard::marshal
