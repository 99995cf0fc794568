// What a request or a reply is made of. Most are one struct with fields (fields.hh), whole and alone; the
// forms below are for the others, and stand in the lines of the tables. Compile-time only.
#pragma once

#include "marshal/fields.hh"

namespace outboard::marshal {

/// No bytes.
struct nothing {
  template <class Visit>
  void fields(Visit&) {}
};

/// Body, and bytes behind it, to the end of the frame.
template <class Body>
struct with_bytes {};
using raw_bytes = with_bytes<nothing>;

/// As the fields of Body; an end writes or reads them where they lie, without making one, or takes more
/// behind them.
template <class Body>
struct by_hand {};

/// Of a reply: Body, or nothing; the request decides.
template <class Body>
struct perhaps {};

namespace detail {

template <class Form>
struct form {
  using body = Form;
  static constexpr bool plain = true, by_hand = false;
};
template <class Body>
struct form<with_bytes<Body>> {
  using body = Body;
  static constexpr bool plain = false, by_hand = false;
};
template <class Body>
struct form<by_hand<Body>> {
  using body = Body;
  static constexpr bool plain = false, by_hand = true;
};
template <class Body>
struct form<perhaps<Body>> {
  using body = Body;
  static constexpr bool plain = false, by_hand = false;
};

}  // namespace detail

/// The struct that it begins with, or is.
template <class Form>
using body_of = typename detail::form<Form>::body;

/// It is that struct, and nothing else.
template <class Form>
concept plain_form = detail::form<Form>::plain;
template <class Form>
concept hand_form = detail::form<Form>::by_hand;

}  // namespace outboard::marshal
