// The structs of structs.def as data: where each field lies and what it is. Used for the wire (padding does
// not travel, handles in structs are translated), for the mock, and for the comparison with nvml.h. Static
// storage; any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "api/nvml/functions.hh"

namespace outboard::api::nvml {

struct struct_layout;

enum class field_kind : std::uint8_t {
  plain,
  list,  ///< points to memory of the program; another field has the number of elements
  tail,  ///< an array at the end; another field has the number of elements in use
  text,  ///< points to a text that belongs to the library
};

struct field_layout {
  std::string_view name;
  std::size_t offset = 0, size = 0;
  const struct_layout* (*nested)() = nullptr;  ///< of one element in place, if it is a struct
  std::size_t elements = 1;
  handle_kind handle = handle_kind::none;
  bool pointer = false;  ///< plain, although it is a pointer
  field_kind kind = field_kind::plain;
  std::size_t count_at = 0;                    ///< list and tail: offset of the field that counts them
  const struct_layout* (*listed)() = nullptr;  ///< list: of one element, if it is a struct
  std::size_t stride = 0;                      ///< list: size of one element
};

struct struct_layout {
  std::string_view name;
  std::size_t size = 0;
  unsigned version = 0;  ///< VERSIONED: its number; `version` is then the first field
  bool is_union = false;
  std::span<const field_layout> fields;
};

/// The layout of a struct of structs.def; nullptr for any other type.
template <class T>
inline constexpr const struct_layout* (*layout_of)() = nullptr;

#define STRUCT(name, fields)            \
  const struct_layout* layout_##name(); \
  template <>                           \
  inline constexpr const struct_layout* (*layout_of<name>)() = layout_##name;
#define VERSIONED(name, number, fields) STRUCT(name, fields)
#define UNION(name, fields) STRUCT(name, fields)
#include "api/nvml/structs.def"
#undef UNION
#undef VERSIONED
#undef STRUCT

template <class T>
concept struct_type = layout_of<T>
!= nullptr;

/// All layouts.
std::span<const struct_layout* const> structs();

/// The struct's tail (an array at the end of which only a part is in use), or nullptr.
const field_layout* tail_of(const struct_layout& of);
/// Whether the struct has lists or texts, at any depth.
bool leads_elsewhere(const struct_layout& of);

/// The number of elements of a list or tail, as the struct at `holder` says.
inline unsigned said_count(const field_layout& f, const std::byte* holder) {
  unsigned count = 0;
  std::memcpy(&count, holder + f.count_at, sizeof count);
  return count;
}

/// The number of elements of a field in place, if `size` bytes of its struct are present.
inline std::size_t elements_there(const field_layout& f, const std::byte* holder, std::size_t size) {
  if (f.offset >= size) return 0;
  const std::size_t room = (size - f.offset) / (f.size / f.elements);
  const std::size_t said = f.kind == field_kind::tail ? said_count(f, holder) : f.elements;
  return std::min({said, room, f.elements});
}

/// Writes zeros between the fields of the struct at `at`, of which `size` bytes are present.
void clear_padding(const struct_layout& of, std::byte* at, std::size_t size);
inline void clear_padding(const struct_layout& of, std::byte* at) { clear_padding(of, at, of.size); }

/// Calls visit(field, holder) with every list and text in the first `size` bytes of the struct at `at` and of
/// those inside of it; `holder` is the struct that has the field. Ends early and returns false when a visit
/// returns false.
template <class Byte, class Visit>
bool for_each_pointer(const struct_layout& of, Byte* at, std::size_t size, Visit&& visit) {
  if (of.is_union) return true;
  for (const field_layout& f : of.fields) {
    const std::size_t there = elements_there(f, at, size);
    if (f.kind == field_kind::list || f.kind == field_kind::text) {
      if (there == 1 && !visit(f, at)) return false;
    } else if (f.nested) {
      const std::size_t stride = f.size / f.elements;
      for (std::size_t i = 0; i < there; ++i) {
        if (!for_each_pointer(*f.nested(), at + f.offset + i * stride, stride, visit)) return false;
      }
    }
  }
  return true;
}

/// Calls visit(kind, handle) with every handle in the struct at `at`, to be replaced.
void for_each_handle(const struct_layout& of, std::byte* at,
                     void (*visit)(void* context, handle_kind kind, void** handle), void* context);

}  // namespace outboard::api::nvml
