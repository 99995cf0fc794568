// Does a line of a table fit the vendor's prototype? The checks that every API's tables make at compile time,
// one for each message. No state.
#pragma once

#include <array>
#include <type_traits>

#include "api/describe.hh"
#include "api/handles.hh"

namespace outboard::api {

namespace detail {

template <class T>
constexpr bool is_const_pointee = std::is_const_v<std::remove_pointer_t<T>>;

template <class T>
constexpr bool direction_fits(const parameter& p) {
  if constexpr (std::is_pointer_v<T>) {
    return p.dir == direction::in || (p.dir != direction::at && !is_const_pointee<T>);
  } else {
    return p.dir == direction::in || (p.dir == direction::at && device_address_type<T>);
  }
}

template <class T>
constexpr bool count_fits(const parameter& p) {
  if constexpr (std::is_pointer_v<T>) {
    using pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
    return !std::is_void_v<pointee> || p.count != count_kind::one;
  } else {
    return p.count == count_kind::one;
  }
}

template <class T>
constexpr bool can_count() {
  using value = std::remove_cv_t<std::remove_pointer_t<T>>;
  return std::is_integral_v<value>;
}

template <class T>
concept complete = requires {
  sizeof(T);
};

/// No pointer in T, at any depth, leads to a struct that the vendor keeps to itself, except a handle we know.
template <class T>
constexpr bool opaque_is_handle() {
  if constexpr (std::is_pointer_v<T>) {
    using pointee = std::remove_cv_t<std::remove_pointer_t<T>>;
    if constexpr (std::is_class_v<pointee> || std::is_union_v<pointee>) {
      return complete<pointee> || handle_type<std::remove_cv_t<T>>;
    } else {
      return opaque_is_handle<pointee>();
    }
  } else {
    return true;
  }
}

/// T is what a function that creates (a pointer) or destroys (a value) a handle takes.
template <class T>
constexpr bool names_handle() {
  return handle_type<T> || handle_type<std::remove_pointer_t<T>>;
}

/// hand-written ends (custom, local) may list names only: their directions are documentation, the arity is
/// checked.
template <class F>
struct signature;
template <class R, class... A>
struct signature<R(A...)> {
  static constexpr std::size_t arity = sizeof...(A);
  static constexpr bool returns_handle = handle_type<R>;
  static constexpr bool directions(const description& d) {
    std::size_t i = 0;
    return (direction_fits<A>(d.parameters[i++]) && ...);
  }
  static constexpr bool counts(const description& d) {
    std::size_t i = 0;
    return (count_fits<A>(d.parameters[i++]) && ...);
  }
  static constexpr bool counters(const description& d) {
    constexpr std::array<bool, sizeof...(A) + 1> integral{can_count<A>()..., false};
    for (std::size_t i = 0; i < d.arity; ++i) {
      const parameter& p = d.parameters[i];
      if (p.count == count_kind::parameter && !integral[p.count_index]) return false;
    }
    return true;
  }
  static constexpr bool opaques() { return (opaque_is_handle<A>() && ...); }
  static constexpr bool lives(const description& d) {
    constexpr std::array<bool, sizeof...(A) + 1> handle{names_handle<A>()..., false};
    return (d.creates == no_parameter || handle[d.creates]) &&
           (d.destroys == no_parameter || handle[d.destroys]);
  }
};

constexpr bool generated(kind how) { return how == kind::call || how == kind::post; }

}  // namespace detail

/// Defines line<opcode::symbol> of a line with a prototype, for the tables' expansion.
#define OUTBOARD_DESCRIBE_FUNCTION(opcode_, prototype_, kind_, symbol, text_) \
  template <>                                                                 \
  struct line<opcode_::symbol> {                                              \
    using prototype = prototype_;                                             \
    static constexpr kind how = kind::kind_;                                  \
    static constexpr const char* name = #symbol;                              \
    static constexpr const char* text = text_;                                \
  };

/// Checks that line against the prototype. In one file, the one that has the table of all functions: for all
/// of them it takes a compiler seconds.
#define OUTBOARD_CHECK_FUNCTION(opcode_, symbol)                                                             \
  struct check_##symbol {                                                                                    \
    static constexpr const description& about = function<opcode_::symbol>::about;                            \
    using shape = detail::signature<function<opcode_::symbol>::prototype>;                                   \
    static_assert(about.error == parse_error::none, #symbol ": the annotation does not follow the grammar"); \
    static_assert(about.arity == shape::arity, #symbol ": wrong number of parameters");                      \
    static_assert(!detail::generated(about.how) || shape::directions(about),                                 \
                  #symbol ": out or inout on a value or a const pointer");                                   \
    static_assert(!detail::generated(about.how) || shape::counts(about),                                     \
                  #symbol ": void pointer without a count, or a count on a value");                          \
    static_assert(!detail::generated(about.how) || shape::counters(about), #symbol ": count is no integer"); \
    static_assert(!detail::generated(about.how) || shape::opaques(),                                         \
                  #symbol ": a struct unknown to handles.hh");                                               \
    static_assert(!detail::generated(about.how) || shape::lives(about),                                      \
                  #symbol ": creates or destroys no handle");                                                \
    static_assert(about.returns == shape::returns_handle,                                                    \
                  #symbol ": a handle is returned and the line does not say so, or the other way round");    \
  };

}  // namespace outboard::api
