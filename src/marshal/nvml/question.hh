// How a call of an NVML function travels. A question holds each parameter in order: a value as it is in
// memory, a handle as u64, a pointer as a presence flag and, if it carries something in, its elements; text
// is sized. An answer holds an i32 code and, if that is success or "insufficient size", the elements of each
// present output. Elements: u32 count, then each: integers as they are, handles as u64, structs as structs.hh
// says. api/nvml/forms.hh drives both ends, and neither trusts the other.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "api/nvml/forms.hh"
#include "marshal/nvml/structs.hh"
#include "wire/cursor.hh"

namespace outboard::marshal::nvml {

using api::nvml::function_form;
using api::nvml::handle_kind;
using api::nvml::nvmlReturn_t;
using api::nvml::words;

/// The most that all arrays of one call may occupy.
inline constexpr std::size_t max_bytes = 4u << 20;
/// Room for an array whose size is not an argument; the function returns it (GPU instances of a board: 7).
inline constexpr std::uint32_t unsized_elements = 64;

/// The program's side. Returns NVML's own code for arguments that need no server: null outputs, a struct
/// whose `version` contains no size.
nvmlReturn_t check_arguments(const function_form& form, const words& arguments);
void encode_question(wire::writer& w, const function_form& form, const words& arguments);
/// Writes the outputs through the program's pointers. Returns false if the answer does not fit the question.
bool decode_answer(wire::reader& r, const function_form& form, const words& arguments, nvmlReturn_t& code,
                   text_pool& texts);

/// Finds the objects of the server behind handles.
class handle_book {
 public:
  virtual ~handle_book() = default;
  /// nullptr: there is no such handle.
  virtual void* find(handle_kind kind, std::uint64_t handle) = 0;
  virtual std::uint64_t handle_of(handle_kind kind, void* object) = 0;
};

/// The server's side: one question, decoded into our memory. Values; one thread.
class question {
 public:
  /// Returns false if the question is malformed; the connection then ends.
  bool decode(wire::reader& r, const function_form& form, handle_book& handles);
  /// Success, or the code to return without asking the device.
  nvmlReturn_t code() const { return code_; }
  words& arguments() { return arguments_; }
  void encode_answer(wire::writer& w, nvmlReturn_t code, handle_book& handles);

 private:
  struct buffer {
    bool present = false;
    std::uint32_t capacity = 0;         ///< elements
    std::uint32_t stride = 0;           ///< bytes of one
    std::vector<std::uint64_t> memory;  ///< aligned for any element
    std::byte* bytes() { return reinterpret_cast<std::byte*>(memory.data()); }
  };

  bool decode_elements(wire::reader& r, std::size_t index, handle_book& handles);
  bool make_room(handle_book& handles);
  bool reserve(std::size_t index, std::uint64_t elements, std::uint32_t stride);
  std::byte* make_list(std::uint32_t elements, std::size_t stride);
  std::uint64_t counter(std::size_t index);
  std::uint32_t filled(std::size_t index, nvmlReturn_t code);
  void encode_elements(wire::writer& w, std::size_t index, std::uint32_t count, nvmlReturn_t code,
                       handle_book& handles);

  const function_form* form_ = nullptr;
  nvmlReturn_t code_ = api::nvml::NVML_SUCCESS;
  words arguments_{};
  std::array<buffer, api::nvml::max_arguments> buffers_;
  std::unordered_map<const std::byte*, buffer> lists_;  ///< what structs point to, by address
  std::size_t taken_ = 0;
};

}  // namespace outboard::marshal::nvml
