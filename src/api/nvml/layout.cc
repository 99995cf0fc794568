#include "api/nvml/layout.hh"

#include <cstring>
#include <type_traits>
#include <vector>

namespace outboard::api::nvml {
namespace {

template <class Member>
constexpr field_layout describe(std::string_view name, std::size_t offset) {
  using element = std::remove_all_extents_t<Member>;
  return {name,
          offset,
          sizeof(Member),
          layout_of<element>,
          sizeof(Member) / sizeof(element),
          kind_of<element>,
          pointer_parameter<element>};
}

/// Which bytes of [at, at + size) belong to fields.
void mark(const struct_layout& of, std::size_t at, std::vector<bool>& used) {
  for (const field_layout& f : of.fields) {
    const std::size_t stride = f.size / f.elements;
    for (std::size_t i = 0; i < f.elements; ++i) {
      const std::size_t begin = at + f.offset + i * stride;
      if (f.nested && !of.is_union) {
        mark(*f.nested(), begin, used);
      } else {
        for (std::size_t b = begin; b < begin + stride; ++b) used[b] = true;
      }
    }
  }
}

}  // namespace

#define F(type, field) describe<decltype(here::field)>(#field, offsetof(here, field)),
#define A(type, field, count) F(type, field)
#define A2(type, field, rows, columns) F(type, field)
#define P(type, field) F(type, field)
#define DEFINE(name_, number, union_, ...)                                                         \
  const struct_layout* layout_##name_() {                                                          \
    using here = name_;                                                                            \
    static constexpr field_layout list[] = {__VA_ARGS__};                                          \
    static constexpr struct_layout layout{#name_, sizeof(name_), number, union_, std::span(list)}; \
    return &layout;                                                                                \
  }
#define STRUCT(name, fields) DEFINE(name, 0, false, fields)
#define VERSIONED(name, number, fields) DEFINE(name, number, false, fields)
#define UNION(name, fields) DEFINE(name, 0, true, fields)
#include "api/nvml/structs.def"
#undef UNION
#undef VERSIONED
#undef STRUCT
#undef DEFINE
#undef P
#undef A2
#undef A
#undef F

std::span<const struct_layout* const> structs() {
  static const struct_layout* const list[] = {
#define STRUCT(name, fields) layout_##name(),
#define VERSIONED(name, number, fields) layout_##name(),
#define UNION(name, fields) layout_##name(),
#include "api/nvml/structs.def"
#undef UNION
#undef VERSIONED
#undef STRUCT
  };
  return list;
}

void clear_padding(const struct_layout& of, std::byte* at) {
  std::vector<bool> used(of.size);
  mark(of, 0, used);
  for (std::size_t b = 0; b < of.size; ++b) {
    if (!used[b]) at[b] = std::byte{0};
  }
}

void for_each_handle(const struct_layout& of, std::byte* at,
                     void (*visit)(void* context, handle_kind kind, void** handle), void* context) {
  for (const field_layout& f : of.fields) {
    const std::size_t stride = f.size / f.elements;
    for (std::size_t i = 0; i < f.elements; ++i) {
      std::byte* element = at + f.offset + i * stride;
      if (f.nested) {
        for_each_handle(*f.nested(), element, visit, context);
      } else if (f.handle != handle_kind::none) {
        void* value = nullptr;
        std::memcpy(&value, element, sizeof value);
        visit(context, f.handle, &value);
        std::memcpy(element, &value, sizeof value);
      }
    }
  }
}

}  // namespace outboard::api::nvml
