// Describes the parameters of each function that travels as data, so that encoding, decoding, mock and fuzz
// target each need one piece of code for all functions. Arguments are passed as 64-bit words: a widened
// value, a handle, or an address. Static storage; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "api/nvml/layout.hh"

namespace outboard::api::nvml {

enum class parameter_class : std::uint8_t {
  value,   ///< an integer
  handle,  ///< one of ours
  memory,  ///< points to elements in the program's memory
};

struct parameter_form {
  parameter_class what = parameter_class::value;
  std::uint32_t size = 0;                      ///< of the value or of one element
  handle_kind handle = handle_kind::none;      ///< of the value or of the elements
  const struct_layout* (*layout)() = nullptr;  ///< of one element, if it is a struct
  bool text = false;                           ///< elements are characters
};

struct function_form {
  opcode code = opcode::none;
  const description* about = nullptr;
  bool fixed = false;
  std::span<const parameter_form> parameters;
};

/// The form of a CALL or CUSTOM line, else nullptr.
const function_form* find_form(std::uint32_t code);
std::span<const function_form> forms();

/// The largest number of parameters of a function.
inline constexpr std::size_t max_arguments = 8;
using words = std::array<std::uint64_t, max_arguments>;

template <class T>
constexpr parameter_form form_of() {
  using bare = std::remove_cv_t<T>;
  if constexpr (handle_type<bare>) {
    return {parameter_class::handle, sizeof(T), kind_of<bare>};
  } else if constexpr (std::is_pointer_v<bare>) {
    using element = std::remove_cv_t<std::remove_pointer_t<bare>>;
    if constexpr (std::is_void_v<element>) {
      return {parameter_class::memory, 1};
    } else {
      return {parameter_class::memory, sizeof(element), kind_of<element>, layout_of<element>,
              std::is_same_v<element, char>};
    }
  } else {
    return {parameter_class::value, sizeof(T)};
  }
}

template <class T>
std::uint64_t to_word(T argument) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uintptr_t>(argument);
  } else {
    return static_cast<std::uint64_t>(argument);
  }
}

template <class T>
T from_word(std::uint64_t word) {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<T>(static_cast<std::uintptr_t>(word));
  } else {
    return static_cast<T>(word);
  }
}

}  // namespace outboard::api::nvml
