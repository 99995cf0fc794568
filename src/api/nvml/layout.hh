// The structs of structs.def as data: where each field lies, what it is. For the wire (no byte between fields
// travels, handles in structs are translated), for the mock, and for the comparison with nvml.h. Static
// storage; any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "api/nvml/functions.hh"

namespace outboard::api::nvml {

struct struct_layout;

struct field_layout {
  std::string_view name;
  std::size_t offset = 0, size = 0;
  const struct_layout* (*nested)() = nullptr;  ///< of one element, if it is a struct
  std::size_t elements = 1;
  handle_kind handle = handle_kind::none;
  bool pointer = false;  ///< to memory of the program
};

struct struct_layout {
  std::string_view name;
  std::size_t size = 0;
  unsigned version = 0;  ///< VERSIONED: its number; `version` is then the first field
  bool is_union = false;
  std::span<const field_layout> fields;
};

/// Of a struct of structs.def; nullptr for any other type.
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

/// All of them.
std::span<const struct_layout* const> structs();

/// Writes zeros between the fields of the struct at `at`.
void clear_padding(const struct_layout& of, std::byte* at);

/// Calls visit(kind, handle) with every handle in the struct at `at`, to be replaced.
void for_each_handle(const struct_layout& of, std::byte* at,
                     void (*visit)(void* context, handle_kind kind, void** handle), void* context);

}  // namespace outboard::api::nvml
