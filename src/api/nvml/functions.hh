// What derives from the NVML tables for every function: opcode, name, prototype, description. A line reads as
// in api/describe.hh, with one word of its own behind the semicolon: fixed (the answer stays the same while
// the server runs, so the front-end keeps it). A misfit between a line and the prototype is a compile error
// of functions.cc that names the function. Compile-time only.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "api/describe.hh"
#include "api/nvml/prototypes.hh"

namespace outboard::api::nvml {

/// Opcodes: chapter number x 1000 + position in the chapter's file. They travel; append-only (golden test).
enum class opcode : std::uint32_t {
  none = 0,
#define CHAPTER(number, file) chapter_##file = number * 1000 - 1,
#define OUTBOARD_LINE(how, symbol, ...) symbol,
#include "api/nvml/expand.def"
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
#include "api/nvml/expand.def"
#undef OUTBOARD_LINE
#undef CHAPTER
    default:
      return {};
  }
}

struct function_info {
  opcode code;
  std::string_view name;     ///< NUL-terminated
  std::string_view chapter;  ///< name of the chapter's file without .def
  std::string_view text;     ///< the annotation as written; of a refused line the family (coverage.hh)
  const description& about;  ///< of a later or refused line only `how` says something
  bool fixed = false;
};

/// All functions in opcode order. Static storage; any thread.
std::span<const function_info> functions();

/// The function with this opcode, or nullptr (any number may come from a peer).
const function_info* find_function(std::uint32_t code);
const function_info* find_function(std::string_view symbol);

/// Kinds of handles. The numbers travel inside handles: append-only.
enum class handle_kind : std::uint8_t {
  none = 0,
  device = 1,
  unit = 2,
  gpu_instance = 3,
  compute_instance = 4,
  event_set = 5,
  gpm_sample = 6,
  system_event_set = 7,
  count
};

template <class T>
constexpr handle_kind kind_of = handle_kind::none;
template <>
inline constexpr handle_kind kind_of<nvmlDevice_t> = handle_kind::device;
template <>
inline constexpr handle_kind kind_of<nvmlUnit_t> = handle_kind::unit;
template <>
inline constexpr handle_kind kind_of<nvmlGpuInstance_t> = handle_kind::gpu_instance;
template <>
inline constexpr handle_kind kind_of<nvmlComputeInstance_t> = handle_kind::compute_instance;
template <>
inline constexpr handle_kind kind_of<nvmlEventSet_t> = handle_kind::event_set;
template <>
inline constexpr handle_kind kind_of<nvmlGpmSample_t> = handle_kind::gpm_sample;
template <>
inline constexpr handle_kind kind_of<nvmlSystemEventSet_t> = handle_kind::system_event_set;

template <class T>
concept handle_type = kind_of<T>
!= handle_kind::none;

/// What points to memory of the program: every pointer that is no handle.
template <class T>
concept pointer_parameter = std::is_pointer_v<T> && !handle_type<T>;

/// As in api/describe.hh: a line as the table has it.
template <opcode>
struct line;

namespace detail {

constexpr std::string_view own_word = "; fixed";

constexpr std::string_view without_own_word(std::string_view text) {
  return text.ends_with(own_word) ? text.substr(0, text.size() - own_word.size()) : text;
}

template <class F>
struct signature;
template <class R, class... A>
struct signature<R(A...)> {
  static constexpr std::size_t arity = sizeof...(A);
  template <class T>
  static constexpr bool direction_fits(const parameter& p) {
    if constexpr (pointer_parameter<T>) {
      return p.dir == direction::in || (p.dir != direction::at && !std::is_const_v<std::remove_pointer_t<T>>);
    } else {
      return p.dir == direction::in && p.count == count_kind::one;
    }
  }
  static constexpr bool directions(const description& d) {
    std::size_t i = 0;
    return (direction_fits<A>(d.parameters[i++]) && ...);
  }
  /// A count is an unsigned, a pointer to one, or an int; void needs one.
  static constexpr bool counts(const description& d) {
    constexpr bool counter[] = {
        (std::is_same_v<std::remove_pointer_t<A>, unsigned> || std::is_same_v<A, int>)..., false};
    constexpr bool untyped[] = {std::is_void_v<std::remove_pointer_t<A>>..., false};
    for (std::size_t i = 0; i < d.arity; ++i) {
      const parameter& p = d.parameters[i];
      if (p.count == count_kind::parameter && !counter[p.count_index]) return false;
      if (untyped[i] && p.count == count_kind::one) return false;
    }
    return true;
  }
};

}  // namespace detail

/// function<opcode::nvmlX>::prototype, ::name, ::about, ::fixed: of lines that are neither later nor refused.
/// Each file parses those that it asks about.
template <opcode Op>
struct function {
  using prototype = typename line<Op>::prototype;
  static constexpr std::string_view name = line<Op>::name;
  static constexpr description about = parse(line<Op>::how, detail::without_own_word(line<Op>::text));
  static constexpr bool fixed = std::string_view(line<Op>::text).ends_with(detail::own_word);
};

#define CHAPTER(number, file)
#define OUTBOARD_LINE(how, symbol, ...) OUTBOARD_DESCRIBE_##how(how, symbol, #__VA_ARGS__)
#define OUTBOARD_DESCRIBE_later(how, symbol, text)
#define OUTBOARD_DESCRIBE_refused(how, symbol, text)
#define OUTBOARD_DESCRIBE_call OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_custom OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE_local OUTBOARD_DESCRIBE
#define OUTBOARD_DESCRIBE(kind_, symbol, text_)     \
  template <>                                       \
  struct line<opcode::symbol> {                     \
    using prototype = decltype(prototypes::symbol); \
    static constexpr kind how = kind::kind_;        \
    static constexpr const char* name = #symbol;    \
    static constexpr const char* text = text_;      \
  };
#include "api/nvml/expand.def"
#undef OUTBOARD_DESCRIBE_later
#undef OUTBOARD_DESCRIBE_refused
#undef OUTBOARD_DESCRIBE_call
#undef OUTBOARD_DESCRIBE_custom
#undef OUTBOARD_DESCRIBE_local
#undef OUTBOARD_DESCRIBE
#undef OUTBOARD_LINE
#undef CHAPTER

}  // namespace outboard::api::nvml
