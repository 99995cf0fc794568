// What derives from the tables for every function: opcode, name, prototype, description. A misfit between a
// line and the vendor's prototype is a compile error here that names the function. Compile-time only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "api/cuda/handles.hh"
#include "api/cuda/headers.hh"
#include "api/describe.hh"

namespace outboard::api {

/// Opcodes: chapter number x 1000 + position in the chapter's file. They travel; append-only (golden test).
enum class opcode : std::uint32_t {
  none = 0,
#define CHAPTER(number, file) chapter_##file = number * 1000 - 1,
#define OUTBOARD_LINE(how, symbol, ...) symbol,
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
};

/// The name of the chapter an opcode belongs to, empty if none.
constexpr std::string_view chapter_name(opcode code) {
  switch (static_cast<std::uint32_t>(code) / 1000) {
#define CHAPTER(number, file) \
  case number:                \
    return #file;
#define OUTBOARD_LINE(how, symbol, ...)
#include "api/cuda/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
    default:
      return {};
  }
}

/// One function as data, for the trace, the coverage page, the mock and the fuzz targets.
struct function_info {
  opcode code;
  std::string_view name;     ///< NUL-terminated
  std::string_view chapter;  ///< name of the chapter's file without .def
  std::string_view
      text;  ///< the annotation as written; for a refused line the family (coverage.hh has its reason)
  const description& about;  ///< of a later or refused line only `how` says something
};

/// All functions in opcode order. Static storage; any thread.
std::span<const function_info> functions();

/// The function with this opcode, or nullptr (any number may come from a peer).
const function_info* find_function(std::uint32_t code);

/// The function with this exported symbol, or nullptr.
const function_info* find_function(std::string_view symbol);

/// function<opcode::cuX>::prototype, ::name, ::about: only for lines that need the prototype (not later,
/// refused).
template <opcode>
struct function;

namespace detail {

template <class T>
constexpr bool is_const_pointee = std::is_const_v<std::remove_pointer_t<T>>;

template <class T>
constexpr bool direction_fits(const parameter& p) {
  if constexpr (std::is_pointer_v<T>) {
    return p.dir == direction::in || (p.dir != direction::at && !is_const_pointee<T>);
  } else {
    return p.dir == direction::in || (p.dir == direction::at && std::is_same_v<T, CUdeviceptr>);
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

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_DESCRIBE_##how(how, symbol, #__VA_ARGS__)
#define OUTBOARD_DESCRIBE_later(how, symbol, text)
#define OUTBOARD_DESCRIBE_refused(how, symbol, text)
#define OUTBOARD_DESCRIBE_call OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_post OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_custom OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_local OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE(kind_, symbol, text_)                                                              \
  template <>                                                                                                \
  struct function<opcode::symbol> {                                                                          \
    using prototype = decltype(::symbol);                                                                    \
    static constexpr std::string_view name = #symbol;                                                        \
    static constexpr description about = parse(kind::kind_, text_);                                          \
    using shape = detail::signature<prototype>;                                                              \
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
  };
#include "api/cuda/expand.def"
#undef OUTBOARD_DESCRIBE_later
#undef OUTBOARD_DESCRIBE_refused
#undef OUTBOARD_DESCRIBE_call
#undef OUTBOARD_DESCRIBE_post
#undef OUTBOARD_DESCRIBE_custom
#undef OUTBOARD_DESCRIBE_local
#undef OUTBOARD_DESCRIBE
#undef OUTBOARD_LINE
#undef CHAPTER

}  // namespace outboard::api
