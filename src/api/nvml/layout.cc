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

/// A list in the program's memory. Its count is an unsigned, as everywhere in NVML.
template <class Pointer, class Counter>
constexpr field_layout describe_list(std::string_view name, std::size_t offset, std::size_t count_at) {
  static_assert(std::is_same_v<Counter, unsigned>);
  using element = std::remove_pointer_t<Pointer>;
  static_assert(kind_of<element> == handle_kind::none);
  field_layout f{name, offset, sizeof(Pointer)};
  f.kind = field_kind::list;
  f.count_at = count_at;
  f.listed = layout_of<element>;
  f.stride = sizeof(element);
  return f;
}

template <class Array, class Counter>
constexpr field_layout describe_tail(std::string_view name, std::size_t offset, std::size_t count_at) {
  static_assert(std::is_same_v<Counter, unsigned>);
  field_layout f = describe<Array>(name, offset);
  f.kind = field_kind::tail;
  f.count_at = count_at;
  return f;
}

constexpr field_layout describe_text(std::string_view name, std::size_t offset) {
  field_layout f{name, offset, sizeof(const char*)};
  f.kind = field_kind::text;
  return f;
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
#define P(type, field, count)                                                                \
  describe_list<decltype(here::field), decltype(here::count)>(#field, offsetof(here, field), \
                                                              offsetof(here, count)),
#define T(type, field, capacity, count)                                                      \
  describe_tail<decltype(here::field), decltype(here::count)>(#field, offsetof(here, field), \
                                                              offsetof(here, count)),
#define S(field) describe_text(#field, offsetof(here, field)),
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
#undef S
#undef T
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

const field_layout* tail_of(const struct_layout& of) {
  return of.fields.back().kind == field_kind::tail ? &of.fields.back() : nullptr;
}

bool leads_elsewhere(const struct_layout& of) {
  for (const field_layout& f : of.fields) {
    if (f.kind == field_kind::list || f.kind == field_kind::text) return true;
    if (f.nested && leads_elsewhere(*f.nested())) return true;
  }
  return false;
}

void clear_padding(const struct_layout& of, std::byte* at, std::size_t size) {
  std::vector<bool> used(of.size);
  mark(of, 0, used);
  for (std::size_t b = 0; b < std::min(size, of.size); ++b) {
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
